"""A program of a few lines for the vendor's support that does what the job does first: compile, compute, all-reduce."""

from __future__ import annotations

_SCRIPT = '''\
"""Does the fault show without the job? Written for this node: {names}; {versions}.

One device:   python reproduce.py
All of them:  msrun --worker_num={count} --local_worker_num={count} --master_port=8118 --join=True reproduce.py --all
"""
import os
import sys
import time

# The compile children are on trial too: one is enough here.
os.environ.setdefault("MS_BUILD_PROCESS_NUM", "1")

import numpy as np
import mindspore as ms
from mindspore import ops
from mindspore.communication import get_group_size, get_rank, init

DEVICES = {devices}
together = "--all" in sys.argv
if together:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend")
    init()
    rank, size = get_rank(), get_group_size()
else:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="Ascend", device_id=int(os.environ.get("DEVICE_ID", DEVICES[0])))
    rank, size = 0, 1


class Step(ms.nn.Cell):
    def __init__(self):
        super().__init__()
        self.multiply = ops.MatMul()
        self.reduce = ops.AllReduce() if together else ops.Identity()

    def construct(self, x):
        return self.reduce(self.multiply(x, x))


step = Step()
x = ms.Tensor(np.full((1024, 1024), 1 / 1024, np.float16))
for number in range(20):
    began = time.monotonic()
    found = float(step(x).asnumpy()[0, 0])
    wanted = size / 1024
    good = abs(found - wanted) < 0.05 * wanted
    took_s, word = time.monotonic() - began, "good" if good else "WRONG"
    print(f"rank {{rank}} step {{number}}: {{took_s:.3f}} s, {{found:.6f}} {{word}}", flush=True)
    if not good:
        sys.exit(1)
'''


def script(devices: tuple[str, ...], names: tuple[str, ...], versions: tuple[str, ...]) -> str:
    """devices: their ids; names: of the chips; versions: `CANN 8.0.RC3`, `mindspore 2.4.1`, as far as known."""
    return _SCRIPT.format(
        names=f"{len(devices) or 'an unknown number of'} × {', '.join(names) or 'an unknown chip'}",
        versions=", ".join(versions) or "versions unknown",
        count=len(devices) or 1,
        devices=tuple(int(one) for one in devices if one.isdigit()) or (0,),
    )
