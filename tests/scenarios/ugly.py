"""Nodes that are well and look bad, through real tool text: none of them may bring a finding."""

from __future__ import annotations

from tests.scenarios.job_faults import OTHER_POD, POD, crowd, inside, slurm
from tests.scenarios.label import Case, Text

JOB = '[[at]]\nt = 0\ndevices = "all"\nstart = [{ pid = 41001, name = "python3", memory = 12000 }]\n'

UGLY: tuple[Case, ...] = (
    Case(
        "children of init, 910B3",
        "somebody has started a run with nohup, a pod and a Slurm job run beside it: ten minutes, two restarts",
        Text(
            "910B3",
            600,
            "[[at]]\nt = 0\ndevice = 0\n"
            'start = [{ pid = 41001, name = "python3", memory = 9000, job = "session 12", user = "carol" }]\n'
            + slurm(4711, 61001, "[1]", at=0, user="alice")
            + "[[at]]\nt = 0\ndevice = 2\n"
            f'start = [{{ pid = 51001, name = "vllm", memory = 20000, job = "kubernetes {POD}", user = 0 }}]\n',
            cards=3,
            restarts=(200, 400),
        ),
    ),
    Case(
        "a job that is slow to leave, A3",
        "its slurmstepd is gone at 60 s, its last process at 270 s",
        Text(
            "A3",
            420,
            slurm(4711, 61001, "[0, 1]", at=0, user="alice")
            + '[[at]]\nt = 60\nlost_jobs = ["slurm 4711"]\n[[at]]\nt = 270\ndevices = [0, 1]\nstop = "all"\n',
            cards=1,
        ),
    ),
    Case(
        "a crowd of one job, 910B3",
        "one Slurm job has nine processes on device 0 and eight on device 1, of which some come and go",
        Text(
            "910B3",
            300,
            crowd(61001, 4711, "[0]", at=0, processes=9)
            + crowd(61021, 4711, "[1]", at=0)
            + "[[at]]\nt = 100\ndevices = [0]\nstop = [61001, 61002]\n"
            + crowd(61041, 4711, "[0, 1]", at=160, processes=2)
            + '[[at]]\nt = 220\ndevices = [0, 1]\nstop = "all"\n',
        ),
    ),
    Case(
        "a hand-over, 910B3",
        "one Slurm job follows another on both devices, of another user; its last processes are ten seconds in leaving",
        Text(
            "910B3",
            240,
            slurm(4711, 61001, "[0, 1]", at=0, user="alice")
            + slurm(4712, 62001, "[0, 1]", at=90, user="bob")
            + "[[at]]\nt = 100\ndevices = [0, 1]\nstop = [61001]\n",
        ),
    ),
    Case(
        "a pod's own pids are others on the host, 910B3 with 26.0.0",
        "a pod has device 0; of one process npu-smi has only the number inside, which is a session's on the host",
        Text(
            "910B3",
            150,
            'tool_version = "26.0.0"\n[[at]]\nt = 0\ndevice = 0\n'
            f'start = [{{ pid = 71001, container_pid = 87, name = "python3", memory = 9, job = "kubernetes {POD}" }}]\n'
            + inside(61001, 71002, 0, at=0)
            + "[[at]]\nt = 0\ndevice = 1\n"
            + 'start = [{ pid = 61001, name = "python3", memory = 900, job = "session 12" }]\n',
        ),
    ),
    Case(
        "two pods with one pid, A3 with 26.1.0",
        "each of two pods has a process 87: one on die 0, beside another of its pod, one on die 1; neither is taken",
        Text(
            "A3",
            150,
            'tool_version = "26.1.0"\n[[at]]\nt = 0\ndevice = 0\n'
            f'start = [{{ pid = 71001, container_pid = 86, name = "python3", memory = 9, job = "kubernetes {POD}" }}]\n'
            + inside(87, 71002, 0, at=0)
            + inside(87, 72001, 1, at=0, pod=OTHER_POD),
            cards=1,
        ),
    ),
    Case(
        "a reboot, 910B3",
        "the node is rebooted at 150 s: another boot id, every count since reset is 0 again, lifetime counts stay",
        Text(
            "910B3",
            480,
            "[[at]]\nt = 0\ndevice = 1\nhbm.single_bit = 15\naer.device.correctable.RxErr = 140\n"
            'port.counters = { mac_rx_fcs_err_pkt_num = 900 }\n[[at]]\nt = 150\ndevices = "all"\nreset = true\n'
            "aer.device.correctable.RxErr = 0\n[[at]]\nt = 200\ndevice = 1\nhbm.single_bit = 4\n",
            reboots=(150,),
        ),
    ),
    Case(
        "the daemon is started anew, A3",
        "twice within five minutes; device 2 has old errors of every kind",
        Text(
            "A3",
            420,
            "[[at]]\nt = 0\ndevice = 2\nhbm.single_bit = 4000\nhbm.double_bit_lifetime = 3\n"
            "hbm.double_bit_isolated_pages = 3\naer.device.nonfatal.CmpltTO = 2\n"
            "port.counters = { roce_new_pkt_rty_num = 90000 }\n",
            restarts=(120, 270),
        ),
    ),
    Case(
        "the clock jumps, 910A",
        "an hour back at 100 s, a year ahead at 200 s, while corrected errors come at a harmless ten an hour",
        Text(
            "910A",
            330,
            '[[at]]\nt = 0\ndevice = 1\nclimb.hbm.single_bit = "10/h"\n',
            jumps=((100, -3600.0), (200, 31_536_000.0)),
        ),
    ),
    Case(
        "a card that is away for a moment, 910B3",
        "device 1 is gone from the table for 20 s, -1 in the list, and back: twice",
        Text("910B3", 240, "[[at]]\nt = 60\nlasts = 20\nevery = 90\ntimes = 2\ndevice = 1\nlost = true\n"),
    ),
    Case(
        "a reset by hand, 310P3",
        "somebody resets device 0 for maintenance: away for 25 s, its counts begin anew",
        Text(
            "310P3",
            240,
            "[[at]]\nt = 0\ndevice = 0\nddr.single_bit = 300\n[[at]]\nt = 60\ndevice = 0\nreset = true\n"
            "[[at]]\nt = 60\nlasts = 25\ndevice = 0\nlost = true\n",
        ),
    ),
    Case(
        "zeros for a poll, 310P Duo",
        "every sub-query of device 2 fails for 14 s, so that one table shows zeros and OK for it",
        Text(
            "310P Duo",
            180,
            '[[at]]\nt = 60\nlasts = 14\nevery = 45\ntimes = 2\ndevice = 2\nfails = ["all", "pci"]\n',
        ),
    ),
    Case(
        "zeros for a poll under load, A3",
        "the heartbeat of die 1 is lost for 14 s while a job runs",
        Text("A3", 180, f'{JOB}[[at]]\nt = 70\nlasts = 14\ndevice = 1\nfails = ["heartbeat", "all"]\n'),
    ),
    Case(
        "a switch is rebooted, 910B3",
        "every port, the host's and the NPUs', is down for three minutes; the link downs count one each",
        Text(
            "910B3",
            420,
            '[[at]]\nt = 60\nlasts = 180\ndevices = "all"\nport.link = "down"\noptics.receive = [0.0, 0.0, 0.0, 0.0]\n'
            '[[at]]\nt = 60\nlasts = 180\nhcas = "all"\nrdma.link = "down"\n',
        ),
    ),
    Case(
        "a port that never was up, A3",
        "no cable was ever in device 3 and in mlx5_1: nobody's loss",
        Text(
            "A3",
            420,
            '[[at]]\nt = 0\ndevice = 3\nport.link = "down"\noptics.present = false\n'
            '[[at]]\nt = 0\nhca = "mlx5_1"\nrdma.link = "down"\n',
        ),
    ),
    Case(
        "idle links asleep, 950PR",
        "power management has all links at 2.5 GT/s until a job begins at 200 s, and again from 300 s on",
        Text(
            "950PR",
            480,
            '[[at]]\nt = 0\nlasts = 200\ndevices = "all"\nlink.speed = 2.5\n[[at]]\nt = 200\ndevices = "all"\n'
            'start = [{ pid = 4711, name = "python3", memory = 9000 }]\n[[at]]\nt = 300\ndevices = "all"\n'
            'stop = "all"\n[[at]]\nt = 310\ndevices = "all"\nlink.speed = 2.5\n',
        ),
    ),
    Case(
        "old lifetime counts, 910B3",
        "device 0 carries the counts of three years, and none of them moves",
        Text(
            "910B3",
            180,
            "[[at]]\nt = 0\ndevice = 0\nhbm.single_bit_lifetime = 90000\nhbm.double_bit_lifetime = 12\n"
            "hbm.double_bit_isolated_pages = 12\nhbm.single_bit_isolated_pages = 400\n"
            "port.counters = { mac_rx_fcs_err_pkt_num = 70000 }\naer.device.correctable.RxErr = 9000\n"
            '[[at]]\nt = 0\nhcas = "all"\nrdma.counters = { symbol_error = 8000, local_link_integrity_errors = 3 }\n',
        ),
    ),
    Case(
        "hccn_tool is busy, 910B3",
        "it says so for six seconds of each 45, and for two minutes the bus of a module is busy",
        Text(
            "910B3",
            360,
            '[[at]]\nt = 30\nlasts = 6\nevery = 45\ntimes = 7\ndevices = "all"\nport.answers = "busy"\n'
            '[[at]]\nt = 100\nlasts = 120\ndevice = 1\nport.answers = "i2c_busy"\n',
        ),
    ),
    Case(
        "hccn_tool hangs, A3",
        "another process holds the lock of its log for a minute; no port is down for that",
        Text("A3", 360, '[[at]]\nt = 100\nlasts = 60\nhccn_tool = "locked"\n'),
    ),
    Case(
        "a slow tool, 910A",
        "npu-smi takes four seconds a call for five minutes, so that every period stretches",
        Text("910A", 480, '[[at]]\nt = 60\nlasts = 300\ntool = "ok"\ntool_delay = 4\n'),
    ),
    Case(
        "a dead MCU, 910B3",
        "the board's controller of device 1 does not answer: two seconds a call, and its blocks are broken",
        Text("910B3", 360, "[[at]]\nt = 60\ndevice = 1\nmcu_dead = true\n"),
    ),
    Case(
        "npu-smi hangs once, 310P3",
        "one call of npu-smi does not come back within its deadline",
        Text("310P3", 240, '[[at]]\nt = 61\nlasts = 14\ntool = "hang"\n'),
    ),
    Case(
        "the tool is replaced, 910A",
        "during an upgrade npu-smi is not there for 20 s, and prints rubbish for ten",
        Text(
            "910A", 240, '[[at]]\nt = 60\nlasts = 20\ntool = "missing"\n[[at]]\nt = 80\nlasts = 10\ntool = "rubbish"\n'
        ),
    ),
    Case(
        "the driver is loaded anew, 910B3",
        "npu-smi says -8005 for 25 s, then every count since reset is 0 again and the links have come up anew",
        Text(
            "910B3",
            300,
            '[[at]]\nt = 0\ndevices = "all"\nhbm.single_bit = 12\n[[at]]\nt = 60\nlasts = 25\ndriver = "gone"\n'
            '[[at]]\nt = 60\ndevices = "all"\nreset = true\n[[at]]\nt = 60\nlasts = 30\ndevices = "all"\n'
            'port.link = "down"\n',
        ),
    ),
    Case(
        "jobs change hands, 910B3",
        "a job ends at 60 s, the next begins 20 s later under full load, and its memory is slow to go",
        Text(
            "910B3",
            240,
            f'{JOB}[[at]]\nt = 60\ndevices = "all"\nstop = "all"\n[[at]]\nt = 60\nlasts = 15\ndevices = "all"\n'
            'hbm.used = 15393\n[[at]]\nt = 80\ndevices = "all"\n'
            'start = [{ pid = 52001, memory = 50000 }, { pid = 52002, name = "a b", memory = 30 }]\n',
        ),
    ),
    Case(
        "a checkpoint and a warm minute, A3",
        "device 1 sends at 29 GB/s for 40 s, below a minute; device 2 is at 91 C for 30 s",
        Text(
            "A3",
            240,
            f"{JOB}[[at]]\nt = 60\nlasts = 40\ndevice = 1\npcie_load.transmit = 29.0\n"
            "[[at]]\nt = 60\nlasts = 30\ndevice = 2\ntemperature = 91\nhbm_temperature = 80\n",
        ),
    ),
    Case(
        "codes that only tell, 910B3",
        "device 0 has hints of the vendor for two minutes: a reset is complete, corrected errors over their threshold",
        Text(
            "910B3",
            240,
            "[[at]]\nt = 60\nlasts = 120\ndevice = 0\n"
            'codes = [{ code = "8C2FA009", text = "reset" }, { code = "80E18006", text = "single-bit" }]\n',
        ),
    ),
    Case(
        "firmware owns the error counters, 310P Duo",
        "no AER counters, no RoCE port, no RDMA on the host, and one corrected DDR error every ten minutes",
        Text(
            "310P Duo",
            240,
            'firmware_owns_aer = true\n[[at]]\nt = 0\ndevice = 1\nclimb.ddr.single_bit = "6/h"\n',
        ),
    ),
    Case(
        "a chip that nobody knows, under a tool from the future",
        "970C2 under npu-smi 27.3: all is read, nothing is guessed",
        Text("910B3", 240, 'chip_name = "970C2"\ntool_version = "27.3.rc1.b007"\n'),
    ),
    Case(
        "tool and driver are upgraded, 910B3",
        "from 23.0 to 26.0 under a running daemon, with another layout of the table; the counts begin anew",
        Text(
            "910B3",
            300,
            'tool_version = "23.0.rc3"\n[[at]]\nt = 0\ndevices = "all"\nhbm.single_bit = 18\n'
            '[[at]]\nt = 90\ndevices = "all"\nreset = true\n[[at]]\nt = 200\ndevice = 0\nhbm.single_bit = 3\n',
            versions=((90, "26.0.rc2"),),
        ),
    ),
    Case(
        "a card is replaced, A3",
        "after a shutdown at 120 s there is another card in slot 1, with old lifetime counts and pages of its own",
        Text(
            "A3",
            540,
            "[[at]]\nt = 0\ndevice = 3\nhbm.single_bit_lifetime = 40\n"
            '[[at]]\nt = 125\ndevices = "all"\nreset = true\n[[at]]\nt = 126\ndevice = 3\n'
            "hbm.single_bit_lifetime = 90000\nhbm.double_bit_lifetime = 9\nhbm.double_bit_isolated_pages = 9\n",
            reboots=(120,),
            swaps=((125, 1),),
        ),
    ),
    Case(
        "three reboots with ports that are slow to come up, 910A",
        "after each the host's ports stay in Init and the NPUs' ports are down for more than a minute: no flapping",
        Text(
            "910A",
            1200,
            '[[at]]\nt = 100\nlasts = 240\nevery = 400\ntimes = 3\nhcas = "all"\nrdma.link = "initializing"\n'
            '[[at]]\nt = 100\nevery = 400\ntimes = 3\ndevices = "all"\nreset = true\n'
            '[[at]]\nt = 101\nlasts = 260\nevery = 400\ntimes = 3\ndevices = "all"\nport.link = "down"\n',
            cards=1,
            reboots=(100, 500, 900),
        ),
    ),
    Case("small and old cards, 310", "eight 310 with no HBM, no ports and a tool of years ago", Text("310", 240, "")),
    Case("a development board, 310B4", "one chip without a PCI address", Text("310B4", 240, "", cards=1)),
    Case(
        "somebody at the cables, A3",
        "mlx5_0 and the port of device 0 are unplugged twice for half a minute",
        Text(
            "A3",
            360,
            '[[at]]\nt = 60\nlasts = 30\nevery = 120\ntimes = 2\nhca = "mlx5_0"\nrdma.link = "down"\n'
            '[[at]]\nt = 60\nlasts = 30\nevery = 120\ntimes = 2\ndevice = 0\nport.link = "down"\n',
        ),
    ),
    Case(
        "ibstat gives up, 910A",
        "the rate of mlx5_1 cannot be read for two minutes; mlx5_0 keeps its values, and neither is down",
        Text("910A", 300, '[[at]]\nt = 60\nlasts = 120\nhca = "mlx5_1"\nrdma.unreadable = true\n'),
    ),
)
