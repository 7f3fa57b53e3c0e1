#!/bin/sh
# Epilog of slurm.conf: drains a node on which the job that just ended found the fault, before the next one starts.
#
#   npu-watchd check says          this exits with   what Slurm makes of it, from an Epilog
#   2  quarantine                  1                 the node is drained ("Epilog error"); the job that ended is not touched
#   anything else                  0                 nothing
#
# Leave it out where the daemon drains the node itself ([quarantine] act = ["slurm"]): its drain comes within seconds, bears
# the reason, asks the budget and is taken off with the release. A drain of this script does none of that: a person resumes
# the node, and nothing keeps a driver update that went wrong from draining the whole cluster, node by node.
#
# As a Prolog, an Epilog must run no command of Slurm.
PROGRAM=/opt/npu-watchd/bin/npu-watchd

said=$(timeout -k 1 3 "$PROGRAM" check --gate quarantine 2>&1)
[ $? -eq 2 ] || exit 0
logger -t npu-watchd-gate -p daemon.warning "after job ${SLURM_JOB_ID:-none}: stop: $said" 2> /dev/null
exit 1
