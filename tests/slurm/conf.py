"""The configuration of a Slurm of one node, as Slurm 22.05 and later read it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_SLURM_CONF = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/{proctrack}
TaskPlugin=task/{task}
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=npu
# As many jobs at once as a test likes, whatever the machine has.
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
KillWait=1
ReturnToService=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{more}NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=4000 Gres=npu:8 State=UNKNOWN
PartitionName=main Nodes={node} Default=YES MaxTime=INFINITE State=UP
"""
_CGROUP_CONF = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
"""


def files(folder: Path, proctrack: str, node: str, host: str, ports: tuple[int, int], more: str) -> Mapping[str, str]:
    """Name → text. ports: the controller's and the node's. more: lines of slurm.conf."""
    in_cgroups = proctrack == "cgroup"
    return {
        "slurm.conf": _SLURM_CONF.format(
            folder=folder,
            proctrack=proctrack,
            task="cgroup" if in_cgroups else "none",
            node=node,
            host=host,
            controller_port=ports[0],
            node_port=ports[1],
            more=more,
        ),
        "gres.conf": f"NodeName={node} Name=npu Count=8\n",
        "cgroup.conf": _CGROUP_CONF if in_cgroups else "",
    }
