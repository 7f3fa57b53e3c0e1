#!/bin/sh
# Prolog of slurm.conf: starts no job on a node that is in quarantine. nhc.conf asks it too.
#
#   npu-watchd check says          this exits with   what Slurm makes of it, from a Prolog
#   0  healthy, watch, probation   0                 the job starts
#   2  quarantine                  1                 the node is drained ("Prolog error"); a batch job goes back into the
#                                                    queue and is held there; srun and salloc end
#   3  unknown, or no answer       0 (see UNKNOWN)   the job starts
#
# Before you use it:
# * A drain for a Prolog error is Slurm's, not npu-watchd's, and npu-watchd never takes it off. After the release:
#   `scontrol update nodename=NODE state=resume`, and `scontrol release JOB` for the job that is held.
#   SchedulerParameters=nohold_on_prolog_fail lets such a job run elsewhere by itself.
# * It runs no command of Slurm. A Prolog that asks the controller does so on every node of a job at once.
# * It reads what the daemon last wrote: milliseconds, no tool, no network. `timeout` is for a disk that hangs.
# * slurmd runs it as root with little environment, so the program's path is a whole one.

# start or stop: what becomes of jobs on a node of which nothing is known, because the daemon is down or was started a
# moment ago, or because a vital query fails. Think of who is on call: with `stop`, an upgrade of npu-watchd drains every
# node that starts a job in those seconds. With `start`, a blind node goes on taking jobs, and the alerts NpuProbeBlind,
# NpuToolWedged and NpuWatchdDown tell of it.
UNKNOWN=start
PROGRAM=/opt/npu-watchd/bin/npu-watchd

said=$(timeout -k 1 3 "$PROGRAM" check --gate quarantine 2>&1)
code=$?
case $code in
    0) exit 0 ;;
    2) verdict=stop ;;
    *) verdict=$UNKNOWN ;;
esac
# Into the node's log, where whoever asks about the drain finds it: `journalctl -t npu-watchd-gate`.
logger -t npu-watchd-gate -p daemon.warning "job ${SLURM_JOB_ID:-none}: $verdict, exit code $code: $said" 2> /dev/null
[ "$verdict" = start ]
