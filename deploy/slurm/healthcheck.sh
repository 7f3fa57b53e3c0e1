#!/bin/sh
# HealthCheckProgram of slurm.conf, for sites where the daemon itself shall not speak to Slurm. Slurm ignores what a
# HealthCheckProgram exits with: it must drain the node itself, and may run scontrol (a Prolog must not).
#
#   npu-watchd check says          what this does
#   2  quarantine                  drains the node with the gate's line, unless somebody has drained it already
#   anything else                  nothing: it never resumes a node; after the release a person does
#
# Use either this or [quarantine] act = ["slurm"], not both: the daemon takes these drains for a person's. The daemon's way
# is the better one: it asks how much of the fleet is out before it drains, knows its own mark, and gives the node back when it
# is released. Here nothing keeps a fault that all nodes share from draining all of them.
PROGRAM=/opt/npu-watchd/bin/npu-watchd
SCONTROL=scontrol
NODE=${SLURMD_NODENAME:-$(hostname -s)}

said=$(timeout -k 1 3 "$PROGRAM" check --gate quarantine 2>&1)
[ $? -eq 2 ] || exit 0
state=$(timeout -k 1 15 "$SCONTROL" show node "$NODE" | sed -n 's/^ *State=\([^ ]*\).*/\1/p')
case $state in
    '' | *DRAIN* | *DOWN* | *FAIL*) exit 0 ;;
esac
timeout -k 1 15 "$SCONTROL" update nodename="$NODE" state=drain reason="npu-watchd check: $said"
