"""Faults as a node's tools and files show them: each is played through real tool text."""

from __future__ import annotations

from tests.scenarios.fabric_faults import FABRIC_FAULTS
from tests.scenarios.hard_faults import HARD_FAULTS
from tests.scenarios.job_faults import JOB_FAULTS
from tests.scenarios.label import CRITICAL, NODE, QUARANTINES, WARNING, Case, Text, info, minute, npu
from tests.scenarios.more_faults import MORE_FAULTS

GONE = Case(
    "card falls off the bus, 910B3",
    "device 1 is gone from the table at 60 s, and stays away; the others are well",
    Text("910B3", 180, "[[at]]\nt = 60\ndevice = 1\nlost = true\n"),
    (info("device_missing", npu(1), QUARANTINES, at=60, lasts_s=30),),
)
TWINS = Case(
    "a die takes its twin along, A3",
    "die 1 of NPU 1 dies, and npu-smi leaves out both dies of the NPU",
    Text("A3", 180, "[[at]]\nt = 60\ndevice = 3\nlost = true\n"),
    (
        info("device_missing", npu(1, 0), QUARANTINES, at=60, lasts_s=30),
        info("device_missing", npu(1, 1), QUARANTINES, at=60, lasts_s=30),
    ),
)
HALF_CARD = Case(
    "one chip of a card dies, 300I Duo",
    "chip 1 of card 32776 is gone, chip 0 of the same card is not",
    Text("310P Duo", 180, "[[at]]\nt = 60\ndevice = 3\nlost = true\n"),
    (info("device_missing", npu(32776, 1), QUARANTINES, at=60, lasts_s=30),),
)
NEVER_CAME = Case(
    "card that never came up, 910A",
    "four cards are expected, device 2 is not there from the start: it has no id, so it is the node's finding",
    Text("910A", 120, "[[at]]\nt = 0\ndevice = 2\nlost = true\n", cards=4),
    (info("device_missing", NODE, QUARANTINES, at=0, lasts_s=30),),
)
AWAY = Case(
    "card is away for two minutes, 910A",
    "device 0 is away from 60 s to 180 s and comes back by itself",
    Text("910A", 300, "[[at]]\nt = 60\nlasts = 120\ndevice = 0\nlost = true\n"),
    (info("device_missing", npu(0), QUARANTINES, at=60, lasts_s=30, over=(180, 203)),),
)
DEAF_THEN_GONE = Case(
    "sick, then gone, 910B3",
    "device 1 answers nothing from 60 s on, its row is all zeros and OK; at 180 s it is gone",
    Text(
        "910B3",
        300,
        '[[at]]\nt = 60\ndevice = 1\nfails = ["all"]\n[[at]]\nt = 180\ndevice = 1\nlost = true\n',
    ),
    (
        info("probe_blind", npu(1), WARNING, at=60, lasts_s=30, over=(180, 230)),
        info("device_missing", npu(1), QUARANTINES, at=180, lasts_s=30),
    ),
)
ALARM = Case(
    "alarm, 910A",
    "npu-smi calls device 1 Alarm from 60 s on",
    Text("910A", 150, '[[at]]\nt = 60\ndevice = 1\nhealth = "Alarm"\n'),
    (info("device_unhealthy", npu(1), CRITICAL, at=60),),
)
WORSE = Case(
    "warning, alarm, critical, A3",
    "device 2 goes from bad to worse in steps of two minutes: one finding that gets heavier",
    Text(
        "A3",
        420,
        '[[at]]\nt = 60\ndevice = 2\nhealth = "Warning"\n[[at]]\nt = 180\ndevice = 2\nhealth = "Alarm"\n'
        '[[at]]\nt = 300\ndevice = 2\nhealth = "Critical"\n',
    ),
    (info("device_unhealthy", npu(1), WARNING, CRITICAL, QUARANTINES, at=60),),
)
PASSING_ALARM = Case(
    "alarm that passes, 950PR",
    "device 1 is in Alarm from 60 s to 180 s",
    Text("950PR", 330, '[[at]]\nt = 60\nlasts = 120\ndevice = 1\nhealth = "Alarm"\n'),
    (info("device_unhealthy", npu(1), CRITICAL, at=60, over=(180, 255)),),
)
SEPARATE = Case(
    "a code that separates the chip, 910B3",
    "device 0 has 0x80E18402 (64 rows isolated) and is Alarm",
    Text(
        "910B3",
        150,
        '[[at]]\nt = 60\ndevice = 0\nhealth = "Alarm"\ncodes = [{ code = "80E18402", text = "isolated rows" }]\n',
    ),
    (info("device_unhealthy", npu(0), CRITICAL, at=60), info("error_code", npu(0), QUARANTINES, at=60)),
)
UNKNOWN_CODE = Case(
    "a code that nobody knows, 950PR",
    "device 1 is Warning with a code in no table: a warning, never a quarantine",
    Text("950PR", 150, '[[at]]\nt = 60\ndevice = 1\nhealth = "Warning"\ncodes = [{ code = "80AAAAAA" }]\n'),
    (info("device_unhealthy", npu(1), WARNING, at=60), info("error_code", npu(1), WARNING, at=60)),
)
CODE_AND_OK = Case(
    "a code while the health is OK, 310P3",
    "device 1 has 0x80818C06 for two minutes, and its health stays OK",
    Text(
        "310P3",
        330,
        '[[at]]\nt = 60\nlasts = 120\ndevice = 1\ncodes = [{ code = "80818C06", text = "self-check" }]\n',
    ),
    (minute("error_code", npu(1), WARNING, at=60, over=(180, 250)),),
)
COMES_BACK = Case(
    "a memory code comes back, 910B3",
    "device 1 has 0x80E01801 twice, seven minutes apart: twice in a day is too often by the vendor's rule",
    Text(
        "910B3",
        720,
        '[[at]]\nt = 60\nlasts = 120\nevery = 420\ntimes = 2\ndevice = 1\nhealth = "Warning"\n'
        'codes = [{ code = "80E01801", text = "multi-bit ECC" }]\n',
    ),
    (
        info("device_unhealthy", npu(1), WARNING, at=60, over=(180, 255)),
        info("error_code", npu(1), WARNING, at=60, over=(180, 255)),
        info("device_unhealthy", npu(1), WARNING, at=480, over=(600, 675)),
        info("error_code", npu(1), WARNING, at=480, over=(600, 675)),
        info("error_code_repeats", npu(1), QUARANTINES, at=480),
    ),
)
THIRD_TIME = Case(
    "any code for the third time, A3",
    "device 1 has 0x80818C06 three times: sub-health each time, so a warning and no quarantine",
    Text(
        "A3",
        1100,
        '[[at]]\nt = 60\nlasts = 100\nevery = 420\ntimes = 3\ndevice = 1\ncodes = [{ code = "80818C06" }]\n',
        cards=1,
    ),
    (
        minute("error_code", npu(0, 1), WARNING, at=60, over=(160, 230)),
        minute("error_code", npu(0, 1), WARNING, at=480, over=(580, 650)),
        minute("error_code", npu(0, 1), WARNING, at=900, over=(1000, 1070)),
        minute("error_code_repeats", npu(0, 1), WARNING, at=900),
    ),
)
DOUBLE_BIT = Case(
    "uncorrectable HBM error and a reset, 910B3",
    "device 1 has one at 60 s; at 240 s it is reset (away for 20 s), and its count begins anew",
    Text(
        "910B3",
        480,
        "[[at]]\nt = 60\ndevice = 1\nhbm.double_bit = 1\n[[at]]\nt = 240\ndevice = 1\nreset = true\n"
        "[[at]]\nt = 240\nlasts = 20\ndevice = 1\nlost = true\n",
    ),
    (minute("hbm_double_bit", npu(1), QUARANTINES, at=60, over=(260, 345)),),
)
DOUBLE_BIT_DDR = Case(
    "uncorrectable DDR errors, 300I Duo",
    "chip 1 of card 8 has had two before the daemon started: a level, so found at once",
    Text("310P Duo", 120, "[[at]]\nt = 0\ndevice = 1\nddr.double_bit = 2\n"),
    (minute("hbm_double_bit", npu(8, 1), QUARANTINES, at=0),),
)
DOUBLE_BIT_BLIND = Case(
    "uncorrectable, then unreadable, A3",
    "device 2 has one at 60 s; from 180 s to 480 s its ECC query fails: held, never over",
    Text(
        "A3",
        600,
        '[[at]]\nt = 60\ndevice = 2\nhbm.double_bit = 1\n[[at]]\nt = 180\nlasts = 300\ndevice = 2\nfails = ["ecc"]\n',
    ),
    (
        minute("hbm_double_bit", npu(1), QUARANTINES, at=60, held=(420, 470), live=(150, 590)),
        minute("probe_blind", npu(1), WARNING, at=300, lasts_s=30, over=(480, 580)),
    ),
)
SINGLE_BIT = Case(
    "corrected HBM errors climb, A3",
    "device 1 has 600 an hour from 60 s on: the 20th comes at 180 s",
    Text("A3", 330, '[[at]]\nt = 60\ndevice = 1\nclimb.hbm.single_bit = "600/h"\n'),
    (minute("hbm_single_bit", npu(0, 1), WARNING, at=180),),
)
SINGLE_BIT_DDR = Case(
    "corrected DDR errors climb, 310P3",
    "device 0 has 900 an hour from 60 s on: the 20th comes at 140 s",
    Text("310P3", 270, '[[at]]\nt = 60\ndevice = 0\nclimb.ddr.single_bit = "900/h"\n'),
    (minute("hbm_single_bit", npu(0), WARNING, at=140),),
)
SINGLE_BIT_OLD = Case(
    "corrected errors on top of old ones, 910A",
    "device 1 has 512 from before; 40 more come at once at 120 s",
    Text(
        "910A",
        240,
        "[[at]]\nt = 0\ndevice = 1\nhbm.single_bit = 512\n[[at]]\nt = 120\ndevice = 1\nhbm.single_bit = 552\n",
    ),
    (minute("hbm_single_bit", npu(1), WARNING, at=120),),
)
PAGES = Case(
    "isolated pages, 910B3",
    "device 0 has 17 at 60 s, and 64 at 240 s: a warning that becomes a quarantine",
    Text(
        "910B3",
        360,
        "[[at]]\nt = 60\ndevice = 0\nhbm.double_bit_isolated_pages = 17\n"
        "[[at]]\nt = 240\ndevice = 0\nhbm.double_bit_isolated_pages = 64\n",
    ),
    (minute("isolated_pages", npu(0), WARNING, QUARANTINES, at=60),),
)
PAGES_BEFORE = Case(
    "isolated pages from before, 950PR",
    "device 1 has had 70 before the daemon started",
    Text("950PR", 120, "[[at]]\nt = 0\ndevice = 1\nhbm.double_bit_isolated_pages = 70\n"),
    (minute("isolated_pages", npu(1), QUARANTINES, at=0),),
)
HOT_CHIP = Case(
    "hot chip, 310P3",
    "device 1 is at 93 C from 60 s to 240 s; it cools to 87 C (not cool yet), and to 70 C at 330 s",
    Text(
        "310P3",
        480,
        "[[at]]\nt = 60\ndevice = 1\ntemperature = 93\n[[at]]\nt = 240\ndevice = 1\ntemperature = 87\n"
        "[[at]]\nt = 330\ndevice = 1\ntemperature = 70\n",
    ),
    (info("overheating", npu(1), WARNING, at=60, lasts_s=60, over=(385, 415)),),
)
HOT_MEMORY = Case(
    "hot memory, 910B3",
    "the HBM of device 0 is at 96 C from 60 s on, its chip is not hot",
    Text("910B3", 240, "[[at]]\nt = 60\ndevice = 0\nhbm_temperature = 96\ntemperature = 70\n"),
    (minute("overheating", npu(0), CRITICAL, at=60, lasts_s=60),),
)
HOTTER = Case(
    "hot, and hotter, A3",
    "device 3 is at 92 C at 60 s and at 106 C at 240 s",
    Text(
        "A3",
        330,
        "[[at]]\nt = 60\ndevice = 3\ntemperature = 92\nhbm_temperature = 80\n"
        "[[at]]\nt = 240\ndevice = 3\ntemperature = 106\nhbm_temperature = 80\n",
    ),
    (info("overheating", npu(1, 1), WARNING, CRITICAL, at=60, lasts_s=60),),
)
HUNG = Case(
    "npu-smi hangs, 910B3",
    "it hangs from 60 s to 300 s and takes no SIGTERM; then all is well",
    Text("910B3", 420, '[[at]]\nt = 60\nlasts = 240\ntool = "hang"\nignores_sigterm = true\n'),
    (
        # Three calls that each take their deadline of 10 s.
        info("tool_wedged", NODE, CRITICAL, at=60, lasts_s=40, over=(300, 360)),
        info("probe_blind", NODE, WARNING, at=90, lasts_s=0, over=(300, 390)),
    ),
)
HUNG_A3 = Case(
    "npu-smi hangs for good, A3",
    "device 1 is Critical at 60 s; from 120 s on npu-smi hangs: the finding is held, the node is blind",
    Text(
        "A3",
        360,
        '[[at]]\nt = 60\ndevice = 1\nhealth = "Critical"\n[[at]]\nt = 120\ntool = "hang"\n',
    ),
    (
        info("device_unhealthy", npu(0, 1), QUARANTINES, at=60, held=(240, 355)),
        # The cap on the tool's share leaves room for the third hung table only now: three calls of 10 s have spent it.
        info("tool_wedged", NODE, CRITICAL, at=120, lasts_s=80),
        info("probe_blind", NODE, WARNING, at=150),
    ),
)
UNLOADED = Case(
    "driver unloaded, 910A",
    "from 60 s to 240 s npu-smi says -8005: nobody is gone, everybody is unknown",
    Text("910A", 360, '[[at]]\nt = 60\nlasts = 180\ndriver = "gone"\n'),
    (info("probe_blind", NODE, WARNING, at=90, over=(240, 295)),),
)
ZEROS = Case(
    "a row of zeros that says OK, 310P3",
    "the driver has lost the heartbeat of device 1 from 60 s to 240 s: no zero is believed, it is unknown",
    Text(
        "310P3",
        360,
        '[[at]]\nt = 60\nlasts = 180\ndevice = 1\nfails = ["heartbeat", "health", "ecc", "temp", "util", "proc"]\n',
    ),
    (info("probe_blind", npu(1), WARNING, at=60, lasts_s=30, over=(240, 350)),),
)
NO_ECC = Case(
    "ECC cannot be read, 950PR",
    "the ECC query of device 0 fails from 60 s on: blind after three of its periods",
    Text("950PR", 330, '[[at]]\nt = 60\ndevice = 0\nfails = ["ecc"]\n'),
    (minute("probe_blind", npu(0), WARNING, at=180, lasts_s=30),),
)

CHIP_FAULTS: tuple[Case, ...] = (
    *(GONE, TWINS, HALF_CARD, NEVER_CAME, AWAY, DEAF_THEN_GONE, ALARM, WORSE, PASSING_ALARM),
    *(SEPARATE, UNKNOWN_CODE, CODE_AND_OK, COMES_BACK, THIRD_TIME),
    *(DOUBLE_BIT, DOUBLE_BIT_DDR, DOUBLE_BIT_BLIND, SINGLE_BIT, SINGLE_BIT_DDR, SINGLE_BIT_OLD, PAGES, PAGES_BEFORE),
    *(HOT_CHIP, HOT_MEMORY, HOTTER, HUNG, HUNG_A3, UNLOADED, ZEROS, NO_ECC),
)
FAULTS: tuple[Case, ...] = (*CHIP_FAULTS, *FABRIC_FAULTS, *HARD_FAULTS, *JOB_FAULTS, *MORE_FAULTS)
