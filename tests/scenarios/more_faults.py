"""Faults that a restart, a reboot or a crowd of others must neither end nor double."""

from __future__ import annotations

from tests.scenarios.label import CRITICAL, NODE, QUARANTINES, WARNING, Case, Text, half, info, minute, npu

BUSY = '[[at]]\nt = 0\ndevices = "all"\nstart = [{ pid = 54001, name = "python3", memory = 12000 }]\n'

MORE_FAULTS: tuple[Case, ...] = (
    Case(
        "alarm over a restart, 910A",
        "device 0 is Alarm with a code from 60 s on; the daemon is restarted at 150 s",
        Text(
            "910A",
            270,
            '[[at]]\nt = 60\ndevice = 0\nhealth = "Alarm"\ncodes = [{ code = "80E18402" }]\n',
            restarts=(150,),
        ),
        (
            info("device_unhealthy", npu(0), CRITICAL, at=60, live=(265,)),
            info("error_code", npu(0), QUARANTINES, at=60, live=(265,)),
        ),
    ),
    Case(
        "hot memory over a restart, 910B3",
        "the HBM of device 1 is at 97 C from 30 s on, its chip is cool; the daemon is restarted at 240 s",
        Text("910B3", 420, "[[at]]\nt = 30\ndevice = 1\nhbm_temperature = 97\ntemperature = 60\n", restarts=(240,)),
        (minute("overheating", npu(1), CRITICAL, at=30, lasts_s=60, live=(415,)),),
    ),
    Case(
        "a full PCIe link over a restart, A3",
        "device 0 receives 28.6 GB/s from 30 s on; the daemon is restarted at 180 s",
        Text("A3", 330, f"{BUSY}[[at]]\nt = 30\ndevice = 0\npcie_load.receive = 28.6\n", cards=1, restarts=(180,)),
        (half("pcie_load", npu(0, 0), WARNING, at=30, lasts_s=60, live=(325,)),),
    ),
    Case(
        "blind over a restart, 310P3",
        "the ECC query of device 1 fails from 30 s on; the daemon is restarted at 330 s: still the same blindness",
        Text("310P3", 480, '[[at]]\nt = 30\ndevice = 1\nfails = ["ecc"]\n', restarts=(330,)),
        (minute("probe_blind", npu(1), WARNING, at=150, lasts_s=30),),
    ),
    Case(
        "npu-smi hangs over a restart, 910A",
        "it hangs from 60 s on; the daemon is restarted at 240 s, and finds it hanging",
        Text("910A", 390, '[[at]]\nt = 60\ntool = "hang"\n', restarts=(240,)),
        (
            info("tool_wedged", NODE, CRITICAL, at=60, lasts_s=60),
            info("probe_blind", NODE, WARNING, at=90),
        ),
    ),
    Case(
        "uncorrectable error, then a reboot, 910A",
        "device 1 has one HBM error at 60 s; the reboot at 150 s sets its count to zero",
        Text(
            "910A",
            450,
            '[[at]]\nt = 60\ndevice = 1\nhbm.double_bit = 1\n[[at]]\nt = 155\ndevices = "all"\nreset = true\n',
            reboots=(150,),
        ),
        (minute("hbm_double_bit", npu(1), QUARANTINES, at=60, over=(331, 395)),),
    ),
    Case(
        "one of sixteen dies, A3",
        "on a full node at work die 1 of NPU 5 has an uncorrectable error at 90 s",
        Text("A3", 180, f"{BUSY}[[at]]\nt = 90\ndevice = 11\nhbm.double_bit = 1\n", cards=8),
        (minute("hbm_double_bit", npu(5, 1), QUARANTINES, at=90),),
    ),
    Case(
        "unhealthy under a slow tool, 910B3",
        "npu-smi takes two seconds a call; device 1 is Critical at 120 s: the table keeps its place before all else",
        Text(
            "910B3",
            240,
            '[[at]]\nt = 0\ntool = "ok"\ntool_delay = 2\n[[at]]\nt = 120\ndevice = 1\nhealth = "Critical"\n',
        ),
        (minute("device_unhealthy", npu(1), QUARANTINES, at=120),),
    ),
    Case(
        "gone while the table was rubbish, 950PR",
        "npu-smi prints rubbish from 60 s to 120 s; device 1 is gone from 60 s on, which shows from 120 s on",
        Text("950PR", 240, '[[at]]\nt = 60\nlasts = 60\ntool = "rubbish"\n[[at]]\nt = 60\ndevice = 1\nlost = true\n'),
        (
            info("probe_blind", NODE, WARNING, at=92, over=(120, 175)),
            info("device_missing", npu(1), QUARANTINES, at=120, lasts_s=30),
        ),
    ),
)
