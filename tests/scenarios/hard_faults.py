"""Faults in the middle of something else: a restart, a reboot, a clock that jumps, a blind spell, another fault."""

from __future__ import annotations

from tests.scenarios.label import CRITICAL, NODE, QUARANTINES, WARNING, Case, Text, half, info, minute, npu, port

BUSY = '[[at]]\nt = 0\ndevices = "all"\nstart = [{ pid = 54001, name = "python3", memory = 12000 }]\n'

NO_WORD = Case(
    "alarm, then a health without a word, A3",
    "device 2 is Alarm at 60 s; from 150 s on its health is a value for which npu-smi has no word: held",
    Text(
        "A3",
        480,
        '[[at]]\nt = 60\ndevice = 2\nhealth = "Alarm"\n[[at]]\nt = 150\ndevice = 2\nhealth = "out of range"\n',
    ),
    (
        info("device_unhealthy", npu(1), CRITICAL, at=60, live=(140,), held=(470,)),
        info("probe_blind", npu(1), WARNING, at=150, lasts_s=30),
    ),
)
FALSE_OK = Case(
    "critical, then an OK that is none, 910B3",
    "device 0 is Critical at 60 s; from 150 s on its health query fails, which the table prints as OK: never healthy",
    Text(
        "910B3",
        480,
        '[[at]]\nt = 60\ndevice = 0\nhealth = "Critical"\n[[at]]\nt = 150\ndevice = 0\nfails = ["health"]\n',
    ),
    (
        info("device_unhealthy", npu(0), QUARANTINES, at=60, held=(470,)),
        minute("probe_blind", npu(0), WARNING, at=270, lasts_s=30),
    ),
)
CODES_LOST = Case(
    "a code, then no answer about codes, 910B3",
    "device 1 has 0x80E18402 at 60 s; from 180 s on npu-smi cannot ask for codes: held",
    Text(
        "910B3",
        480,
        '[[at]]\nt = 60\ndevice = 1\nhealth = "Alarm"\ncodes = [{ code = "80E18402" }]\n'
        '[[at]]\nt = 180\ndevice = 1\nfails = ["codes"]\n',
    ),
    (
        info("device_unhealthy", npu(1), CRITICAL, at=60),
        info("error_code", npu(1), QUARANTINES, at=60, held=(470,)),
        minute("probe_blind", npu(1), WARNING, at=300, lasts_s=30),
    ),
)
AER_RESTART = Case(
    "corrected PCIe errors over a restart, 910B3",
    "device 1 has 120 a minute from 60 s on, the limit is passed at 137 s; at 240 s the daemon is started anew",
    Text("910B3", 420, '[[at]]\nt = 60\ndevice = 1\nclimb.aer.device.correctable.RxErr = "120/m"\n', restarts=(240,)),
    (half("pcie_errors", npu(1), WARNING, at=137, live=(415,)),),
)
HBM_RESTART = Case(
    "a restart in the middle of a climb, 910A",
    "device 0 has 400 corrected errors an hour from 60 s on; at 150 s, with nine of the 20, the daemon is killed",
    Text("910A", 360, '[[at]]\nt = 60\ndevice = 0\nclimb.hbm.single_bit = "400/h"\n', restarts=(150,)),
    (minute("hbm_single_bit", npu(0), WARNING, at=240),),
)
HBM_REBOOT = Case(
    "a reboot in the middle of a climb, 950PR",
    "device 1 has had 12 corrected errors by 60 s; the node is rebooted at 150 s, and by 400 s it has 12 new ones",
    Text(
        "950PR",
        510,
        '[[at]]\nt = 60\ndevice = 1\nhbm.single_bit = 12\n[[at]]\nt = 150\ndevices = "all"\nreset = true\n'
        "[[at]]\nt = 400\ndevice = 1\nhbm.single_bit = 12\n",
        reboots=(150,),
    ),
    (minute("hbm_single_bit", npu(1), WARNING, at=400),),
)
CLOCK_BACK = Case(
    "the clock is set back while a port is down, 910B3",
    "mlx5_0 is down from 60 s on; at 120 s the clock is set back by two hours, and the daemon is started anew at 180 s",
    Text(
        "910B3",
        390,
        '[[at]]\nt = 60\nhca = "mlx5_0"\nrdma.link = "down"\n',
        jumps=((120, -7200.0),),
        restarts=(180,),
    ),
    (half("roce_down", port("mlx5_0"), CRITICAL, at=60, lasts_s=230),),
)
DOWN_MEANWHILE = Case(
    "a port that falls while the daemon is away, A3",
    "the port of device 1 and mlx5_1 go down at 123 s, three seconds after the daemon was killed",
    Text(
        "A3",
        480,
        '[[at]]\nt = 123\ndevice = 1\nport.link = "down"\n[[at]]\nt = 123\nhca = "mlx5_1"\nrdma.link = "down"\n',
        restarts=(120,),
    ),
    (
        minute("roce_down", npu(0, 1), CRITICAL, at=130, lasts_s=240),
        half("roce_down", port("mlx5_1"), CRITICAL, at=130, lasts_s=240),
    ),
)
GONE_RESTART = Case(
    "a card is gone, and the daemon is started anew, 910B3",
    "device 1 is gone at 60 s; at 180 s the daemon is restarted: the same finding, held, and no second one",
    Text("910B3", 330, "[[at]]\nt = 60\ndevice = 1\nlost = true\n", restarts=(180,)),
    (info("device_missing", npu(1), QUARANTINES, at=60, lasts_s=30, held=(320,)),),
)
BACK_AFTER_REBOOT = Case(
    "a card is gone, and a reboot brings it back, A3",
    "both dies of NPU 1 are gone at 60 s; the node is rebooted at 180 s, and they are there again",
    Text("A3", 450, "[[at]]\nt = 60\nlasts = 150\ndevice = 3\nlost = true\n", reboots=(180,)),
    (
        info("device_missing", npu(1, 0), QUARANTINES, at=60, lasts_s=30, over=(361, 380)),
        info("device_missing", npu(1, 1), QUARANTINES, at=60, lasts_s=30, over=(361, 380)),
    ),
)
GONE_IN_REBOOT = Case(
    "a card that a reboot loses, 910A",
    "device 1 of two is not there any more after the reboot at 120 s: it has no id now, so it is the node's finding",
    Text("910A", 420, "[[at]]\nt = 130\ndevice = 1\nlost = true\n", reboots=(120,)),
    (info("device_missing", NODE, QUARANTINES, at=300, lasts_s=30),),
)
FATAL_THEN_GONE = Case(
    "fatal PCIe error, then off the bus, 910B3",
    "device 0 has a fatal error at 60 s and is gone at 120 s: both findings stand, the first is held",
    Text(
        "910B3",
        300,
        "[[at]]\nt = 60\ndevice = 0\naer.device.fatal.DLP = 1\n[[at]]\nt = 120\ndevice = 0\nlost = true\n",
    ),
    (
        half("pcie_errors", npu(0), QUARANTINES, at=60, held=(290,)),
        info("device_missing", npu(0), QUARANTINES, at=120, lasts_s=30),
    ),
)
ADAPTER_GONE = Case(
    "a host adapter falls off the bus, A3",
    "mlx5_0 is gone at 60 s; it was up before, so it is missed",
    Text("A3", 390, '[[at]]\nt = 60\nhca = "mlx5_0"\nrdma.lost = true\n'),
    (half("roce_down", port("mlx5_0"), CRITICAL, at=60, lasts_s=240),),
)
INITIALIZING = Case(
    "a host port without its subnet manager, 950PR",
    "mlx5_1 has a link and stays in Init from 60 s on: no traffic goes, so it is down",
    Text("950PR", 390, '[[at]]\nt = 60\nhca = "mlx5_1"\nrdma.link = "initializing"\n'),
    (half("roce_down", port("mlx5_1"), CRITICAL, at=60, lasts_s=240),),
)
TWIN_ECC = Case(
    "the twin's error, A3",
    "the ECC query of device 2 fails from 30 s to 170 s, less than three periods; device 3 beside it has a double bit "
    "error at 60 s",
    Text(
        "A3",
        300,
        '[[at]]\nt = 30\nlasts = 140\ndevice = 2\nfails = ["ecc"]\n[[at]]\nt = 60\ndevice = 3\nhbm.double_bit = 1\n',
    ),
    (minute("hbm_double_bit", npu(1, 1), QUARANTINES, at=60),),
)
DIM_THEN_DARK = Case(
    "dim, then dark, 910B3",
    "lane 1 of device 0 receives 0.05 mW from 90 s on; at 270 s its light and the link are gone",
    Text(
        "910B3",
        630,
        "[[at]]\nt = 90\ndevice = 0\noptics.receive = [0.95, 0.05, 0.97, 0.94]\n"
        '[[at]]\nt = 270\ndevice = 0\noptics.receive = [0.95, 0.0, 0.97, 0.94]\nport.link = "down"\n',
    ),
    (
        minute("optics", npu(0), WARNING, at=90, lasts_s=60),
        minute("roce_down", npu(0), CRITICAL, at=270, lasts_s=240),
    ),
)
CODE_RESTART = Case(
    "a code comes back after a restart, 310P3",
    "device 1 has 0x80A18008 at 60 s for two minutes; the daemon is restarted at 300 s; it is back at 480 s: twice",
    Text(
        "310P3",
        600,
        '[[at]]\nt = 60\nlasts = 120\nevery = 420\ntimes = 2\ndevice = 1\ncodes = [{ code = "80A18008" }]\n',
        restarts=(300,),
    ),
    (
        minute("error_code", npu(1), CRITICAL, at=60, over=(180, 250)),
        minute("error_code", npu(1), CRITICAL, at=480),
        minute("error_code_repeats", npu(1), QUARANTINES, at=480),
    ),
)
FLAP_RESTART = Case(
    "a host port flaps over a restart, 910A",
    "mlx5_1 is down for 70 s every 140 s, three times; the daemon is restarted while it is up after the first",
    Text(
        "910A",
        480,
        '[[at]]\nt = 60\nlasts = 70\nevery = 140\ntimes = 3\nhca = "mlx5_1"\nrdma.link = "down"\n',
        restarts=(175,),
    ),
    (half("roce_flap", port("mlx5_1"), WARNING, at=410),),
)
SLOW_AT_RESTART = Case(
    "a slow port over a reboot, 910B3",
    "mlx5_1 ran at 200 Gbit/s before the node was rebooted at 120 s; it comes back at 100",
    Text("910B3", 450, '[[at]]\nt = 130\nhca = "mlx5_1"\nrdma.rate = "100 Gb/sec (2X HDR)"\n', reboots=(120,)),
    (half("roce_slow", port("mlx5_1"), WARNING, at=300, lasts_s=30),),
)
HOT_BLIND = Case(
    "hot, and then nobody can look, A3",
    "device 0 is at 95 C from 60 s on; from 240 s on npu-smi does not load: the finding is held",
    Text(
        "A3",
        390,
        '[[at]]\nt = 60\ndevice = 0\ntemperature = 95\nhbm_temperature = 80\n[[at]]\nt = 240\ntool = "unloadable"\n',
    ),
    (
        info("overheating", npu(0, 0), WARNING, at=60, lasts_s=60, live=(230,), held=(380,)),
        info("probe_blind", NODE, WARNING, at=270),
    ),
)
UPGRADE = Case(
    "double bit errors over a tool upgrade, 910B3",
    "device 1 has one at 60 s; at 150 s tool and driver go from 23.0 to 26.0 with another layout, without a reset",
    Text(
        "910B3",
        330,
        'tool_version = "23.0.rc3"\n[[at]]\nt = 60\ndevice = 1\nhbm.double_bit = 1\n',
        versions=((150, "26.0.rc2"),),
    ),
    (minute("hbm_double_bit", npu(1), QUARANTINES, at=60),),
)
TWO_AT_ONCE = Case(
    "two faults on two devices, 300I Duo",
    "device 0 has 70 isolated pages and device 2 is at 107 C, both from 60 s on: each its own finding",
    Text(
        "310P Duo",
        210,
        "[[at]]\nt = 60\ndevice = 0\nddr.double_bit_isolated_pages = 70\n"
        "[[at]]\nt = 60\ndevice = 2\ntemperature = 107\n",
    ),
    (
        minute("isolated_pages", npu(8, 0), QUARANTINES, at=60),
        info("overheating", npu(32776, 0), CRITICAL, at=60, lasts_s=60),
    ),
)
NARROW_ASLEEP = Case(
    "slow at work, then idle, 910B3",
    "device 1 works at 8 GT/s of 16 from 60 s on; its job ends at 300 s: an idle link proves nothing, so it is held",
    Text(
        "910B3",
        480,
        f'{BUSY}[[at]]\nt = 60\ndevice = 1\nlink.speed = 8.0\n[[at]]\nt = 300\ndevices = "all"\nstop = "all"\n',
    ),
    (minute("pcie_link", npu(1), WARNING, at=60, lasts_s=120, held=(470,)),),
)
GONE_IN_OUTAGE = Case(
    "a card that an outage of the driver hides, 310P3",
    "npu-smi says -8020 from 60 s to 180 s; when it is back, device 0 is not",
    Text(
        "310P3",
        330,
        '[[at]]\nt = 60\nlasts = 120\ndriver = "occupied"\n[[at]]\nt = 100\ndevice = 0\nlost = true\n',
    ),
    (
        info("probe_blind", NODE, WARNING, at=90, over=(180, 235)),
        info("device_missing", npu(0), QUARANTINES, at=180, lasts_s=30),
    ),
)
HARD_FAULTS: tuple[Case, ...] = (
    *(NO_WORD, FALSE_OK, CODES_LOST, AER_RESTART, HBM_RESTART, HBM_REBOOT, CLOCK_BACK, DOWN_MEANWHILE),
    *(GONE_RESTART, BACK_AFTER_REBOOT, GONE_IN_REBOOT, FATAL_THEN_GONE, ADAPTER_GONE, INITIALIZING, TWIN_ECC),
    *(DIM_THEN_DARK, CODE_RESTART, FLAP_RESTART, SLOW_AT_RESTART, HOT_BLIND, UPGRADE, TWO_AT_ONCE, NARROW_ASLEEP),
    GONE_IN_OUTAGE,
)
