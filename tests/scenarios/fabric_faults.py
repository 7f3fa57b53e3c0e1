"""Faults of ports and of the way to the CPU, played through real tool text and a real sysfs tree."""

from __future__ import annotations

from tests.scenarios.label import CRITICAL, QUARANTINES, WARNING, Case, Expected, Text, half, minute, npu, port

BUSY = '[[at]]\nt = 0\ndevices = "all"\nstart = [{ pid = 54001, name = "python3", memory = 12000 }]\n'

NARROW = Case(
    "half its PCIe lanes, 910A",
    "the link of device 1 falls from sixteen lanes to eight at 60 s, and is whole again at 330 s",
    Text("910A", 450, "[[at]]\nt = 60\nlasts = 270\ndevice = 1\nlink.lanes = 8\n"),
    (minute("pcie_link", npu(1), WARNING, at=60, lasts_s=120, over=(330, 400)),),
)
SLOW_LINK = Case(
    "half its PCIe speed at work, 950PR",
    "device 0 works, and from 60 s on its link runs at 16 GT/s of 32",
    Text("950PR", 300, f"{BUSY}[[at]]\nt = 60\ndevice = 0\nlink.speed = 16.0\n"),
    (minute("pcie_link", npu(0), WARNING, at=60, lasts_s=120),),
)
NARROW_RESTART = Case(
    "half its PCIe lanes over a restart, 910B3",
    "the link of device 1 is narrow from 0 s on; at 240 s the daemon is started anew: one finding, not two",
    Text("910B3", 420, "[[at]]\nt = 0\ndevice = 1\nlink.lanes = 8\n", restarts=(240,)),
    (minute("pcie_link", npu(1), WARNING, at=0, lasts_s=120),),
)
AER_CLIMB = Case(
    "corrected PCIe errors climb, 910B3",
    "device 1 has 60 a minute from 60 s on; the limit of 153.6 in ten minutes is passed at 214 s",
    Text("910B3", 330, '[[at]]\nt = 60\ndevice = 1\nclimb.aer.device.correctable.RxErr = "60/m"\n'),
    (half("pcie_errors", npu(1), WARNING, at=214),),
)
AER_NONFATAL = Case(
    "a PCIe error that is not corrected, A3",
    "device 2 has one at 60 s",
    Text("A3", 150, "[[at]]\nt = 60\ndevice = 2\naer.device.nonfatal.CmpltTO = 1\n"),
    (half("pcie_errors", npu(1), CRITICAL, at=60),),
)
AER_FATAL = Case(
    "a fatal PCIe error, 310P3",
    "the root port above device 1 counts one at 60 s; it was worse than the corrected ones before it",
    Text("310P3", 150, "[[at]]\nt = 60\ndevice = 1\naer.port.fatal.SDES = 1\n"),
    (half("pcie_errors", npu(1), QUARANTINES, at=60),),
)
SATURATED = Case(
    "PCIe links full, A3",
    "devices 2 and 3 receive 28.6 GB/s from 60 s to 300 s, of the 31.5 that their links carry",
    Text("A3", 450, f"{BUSY}[[at]]\nt = 60\nlasts = 240\ndevices = [2, 3]\npcie_load.receive = 28.6\n"),
    (
        half("pcie_load", npu(1, 0), WARNING, at=60, lasts_s=60, over=(360, 400)),
        half("pcie_load", npu(1, 1), WARNING, at=60, lasts_s=60, over=(360, 400)),
    ),
)
SATURATED_OUT = Case(
    "a PCIe link full outwards, 910A",
    "device 0 sends 28.6 GB/s from 60 s on",
    Text("910A", 240, f"{BUSY}[[at]]\nt = 60\ndevice = 0\npcie_load.transmit = 28.6\n"),
    (half("pcie_load", npu(0), WARNING, at=60, lasts_s=60),),
)
CABLE = Case(
    "the cable of an NPU's port is pulled, 910B3",
    "the port of device 1 is down from 60 s to 480 s",
    Text("910B3", 600, '[[at]]\nt = 60\nlasts = 420\ndevice = 1\nport.link = "down"\n'),
    (minute("roce_down", npu(1), CRITICAL, at=60, lasts_s=240, over=(480, 550)),),
)
CABLE_A3 = Case(
    "the cable of a die's port is pulled, A3",
    "the port of device 3 is down from 60 s on; from 390 s on hccn_tool hangs: held",
    Text(
        "A3",
        720,
        '[[at]]\nt = 60\ndevice = 3\nport.link = "down"\n[[at]]\nt = 390\nhccn_tool = "locked"\n',
    ),
    (minute("roce_down", npu(1, 1), CRITICAL, at=60, lasts_s=240, held=(700,)),),
)
HOST_PORT = Case(
    "a host port goes down, 910A",
    "mlx5_1 is down from 60 s on; mlx5_0 is not",
    Text("910A", 390, '[[at]]\nt = 60\nhca = "mlx5_1"\nrdma.link = "down"\n'),
    (half("roce_down", port("mlx5_1"), CRITICAL, at=60, lasts_s=240),),
)
NO_DRIVER = Case(
    "expected ports whose driver is not loaded, 310P3",
    "the configuration expects mlx5_0/1, and there is no RDMA device from the start until 420 s",
    Text(
        "310P3",
        510,
        'hcas = 1\nexpected_ports = ["mlx5_0/1"]\n[[at]]\nt = 0\nlasts = 420\nhcas = "all"\nrdma.lost = true\n',
    ),
    (half("roce_down", port("mlx5_0"), CRITICAL, at=0, lasts_s=240, over=(420, 460)),),
)
FLAPPING_HOST = Case(
    "a host port flaps, 910B3",
    "mlx5_0 is down for 70 s every 140 s, three times: flapping once it is back for the third time, at 410 s",
    Text("910B3", 480, '[[at]]\nt = 60\nlasts = 70\nevery = 140\ntimes = 3\nhca = "mlx5_0"\nrdma.link = "down"\n'),
    (half("roce_flap", port("mlx5_0"), WARNING, at=410),),
)
FLAPPING_NPU = Case(
    "an NPU's port loses its link often, A3",
    "the link of device 1 is lost for 5 s every 40 s, five times: too short to be seen, but the device counts them",
    Text("A3", 330, '[[at]]\nt = 60\nlasts = 5\nevery = 40\ntimes = 5\ndevice = 1\nport.link = "down"\n'),
    (minute("roce_flap", npu(0, 1), WARNING, at=220),),
)
HALF_SPEED = Case(
    "an NPU's port at half its speed, 910B3",
    "the port of device 0 runs at 100 Gbit/s from 90 s on, of 200",
    Text("910B3", 330, "[[at]]\nt = 90\ndevice = 0\nport.speed = 100000\n"),
    (Expected("roce_slow", npu(0), (WARNING,), at_s=90, every_s=120, lasts_s=120),),
)
HALF_SPEED_HOST = Case(
    "a host port at half its speed, A3",
    "mlx5_1 runs at 100 Gbit/s from 60 s to 240 s",
    Text("A3", 330, '[[at]]\nt = 60\nlasts = 180\nhca = "mlx5_1"\nrdma.rate = "100 Gb/sec (2X HDR)"\n'),
    (half("roce_slow", port("mlx5_1"), WARNING, at=60, lasts_s=30, over=(240, 275)),),
)
RETRIES = Case(
    "an NPU's port sends again and again, A3",
    "device 2 retries 10 times a second from 60 s to 240 s: the 600th at 120 s; over when the last are ten minutes old",
    Text(
        "A3",
        300,
        '[[at]]\nt = 60\nlasts = 180\ndevice = 2\nclimb.port.roce_new_pkt_rty_num = "10/s"\n',
    ),
    (minute("roce_errors", npu(1), WARNING, at=120),),
)
CRC = Case(
    "checksum errors on an NPU's port, 910B3",
    "device 1 receives 5 damaged packets a second from 60 s on: the 600th at 180 s",
    Text("910B3", 330, '[[at]]\nt = 60\ndevice = 1\nclimb.port.mac_rx_fcs_err_pkt_num = "5/s"\n'),
    (minute("roce_errors", npu(1), WARNING, at=180),),
)
SYMBOLS = Case(
    "symbol errors on a host port, 910A",
    "mlx5_0 counts 60 a minute from 60 s on; 20 in ten minutes are too many, from 80 s on",
    Text("910A", 180, '[[at]]\nt = 60\nhca = "mlx5_0"\nclimb.rdma.symbol_error = "60/m"\n'),
    (half("roce_errors", port("mlx5_0"), WARNING, at=80),),
)
INTEGRITY = Case(
    "link integrity of a host port, 950PR",
    "mlx5_1 counts one local link integrity error at 60 s: one is too many",
    Text("950PR", 150, '[[at]]\nt = 60\nhca = "mlx5_1"\nrdma.counters = { local_link_integrity_errors = 1 }\n'),
    (half("roce_errors", port("mlx5_1"), WARNING, at=60),),
)
DIM = Case(
    "a lane goes dim, 910B3",
    "lane 2 of device 1 receives 0.07 mW from 90 s to 330 s; the module's own limit is 0.1 mW",
    Text("910B3", 450, "[[at]]\nt = 90\nlasts = 240\ndevice = 1\noptics.receive = [0.95, 0.96, 0.07, 0.94]\n"),
    (minute("optics", npu(1), WARNING, at=90, lasts_s=60, over=(330, 400)),),
)
DARK_SENDER = Case(
    "a lane sends too little, A3",
    "lane 0 of device 3 sends 0.15 mW from 90 s on, below its limit of 0.2; at 300 s the daemon is started anew",
    Text("A3", 480, "[[at]]\nt = 90\ndevice = 3\noptics.transmit = [0.1514]\n", restarts=(300,)),
    (minute("optics", npu(1, 1), WARNING, at=90, lasts_s=60),),
)
LOST_LIGHT = Case(
    "loss of signal on one lane, 910A",
    "lane 3 of device 0 receives nothing from 90 s on, and the link stays up",
    Text("910A", 270, "[[at]]\nt = 90\ndevice = 0\noptics.receive = [0.95, 0.96, 0.97, 0.0]\n"),
    (minute("optics", npu(0), WARNING, at=90, lasts_s=60),),
)

FABRIC_FAULTS: tuple[Case, ...] = (
    *(NARROW, SLOW_LINK, NARROW_RESTART, AER_CLIMB, AER_NONFATAL, AER_FATAL, SATURATED, SATURATED_OUT),
    *(CABLE, CABLE_A3, HOST_PORT, NO_DRIVER, FLAPPING_HOST, FLAPPING_NPU, HALF_SPEED, HALF_SPEED_HOST),
    *(RETRIES, CRC, SYMBOLS, INTEGRITY, DIM, DARK_SENDER, LOST_LIGHT),
)
