"""Asks the driver's library for the PCIe bandwidth of every NPU, in a process of its own.

    python -m npu_watchd.sources.dcmi_helper [--window-ms N] [--library PATH]

A driver call may block for ever, and a fault in the library ends the process that made it; so the daemon never makes
one, but runs this under the runner like any tool. Standard library only, so that it starts in a moment. It prints one
JSON document, which `parsers/dcmi.py` reads, and exits with 0 whatever the driver said; on stderr it names each
device (CARD/DEVICE) before it asks it, so that a call that never returns has an address.

`dcmi_get_pcie_link_bandwidth_info` blocks for the window, device after device: 8 x 100 ms by default. Its tx is what
the device sends, by the DCMI manual of 910B; other exporters' help texts swap the two. It means nothing while a
profiler runs on the device (same manual).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
from collections.abc import Iterator
from ctypes import byref, c_int, c_uint
from typing import Any

LONGEST_WINDOW_MS = 200
LIBRARIES = (
    "libdcmi.so",
    "/usr/local/dcmi/libdcmi.so",
    "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
    "/usr/local/Ascend/driver/lib64/libdcmi.so",
)
"""Where the driver installs it; the first name leaves it to LD_LIBRARY_PATH and the loader's cache."""

_MOST_CARDS = 64
_VALUES = ("tx_p", "tx_np", "tx_cpl", "tx_np_latency", "rx_p", "rx_np", "rx_cpl")


class Bandwidth(ctypes.Structure):
    """`struct dcmi_pcie_link_bandwidth_info`: the window in ms (in), then minimum, maximum, average of each value."""

    _fields_ = [
        ("profiling_time", c_int),
        *((name, c_uint * 3) for name in _VALUES),
        ("slack", c_uint * 64),  # a newer driver may know more values than we do
    ]


class Dcmi:
    """The four calls that are needed. A call that the library lacks raises AttributeError when it is made."""

    def __init__(self, library: str | None) -> None:
        """Raises OSError with the loader's words about the first name that fails otherwise than by not existing."""
        self.library, self._calls = _load((library,) if library else LIBRARIES)

    def init(self) -> int:
        return self._call("dcmi_init")

    def cards(self) -> tuple[int, list[int]]:
        """Code and card ids, which are npu-smi's NPU ids."""
        count, ids = c_int(0), (c_int * _MOST_CARDS)()
        code = self._call("dcmi_get_card_list", byref(count), ids, c_int(_MOST_CARDS))
        return code, list(ids[: min(max(count.value, 0), _MOST_CARDS)])

    def chips(self, card: int) -> tuple[int, int]:
        """Code and number of NPU chips of a card; their ids count from 0, and the MCU's comes after them."""
        chips, mcu, cpu = c_int(0), c_int(0), c_int(0)
        code = self._call("dcmi_get_device_id_in_card", c_int(card), byref(chips), byref(mcu), byref(cpu))
        return code, min(max(chips.value, 0), _MOST_CARDS)

    def bandwidth(self, card: int, device: int, window_ms: int) -> tuple[int, dict[str, list[int]]]:
        """Code and values; blocks for the window."""
        found = Bandwidth(profiling_time=window_ms)
        code = self._call("dcmi_get_pcie_link_bandwidth_info", c_int(card), c_int(device), byref(found))
        return code, {name: list(getattr(found, name)) for name in _VALUES}

    def _call(self, name: str, *arguments: Any) -> int:
        function = getattr(self._calls, name)
        function.restype = c_int
        code = function(*arguments)
        assert isinstance(code, int)
        return code


def _load(names: tuple[str, ...]) -> tuple[str, ctypes.CDLL]:
    missing: OSError | None = None
    for name in names:
        try:
            return name, ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            # Of a library that is there but cannot be loaded the loader's words are worth more.
            if missing is None or f"{name}: cannot open shared object file" not in str(error):
                missing = error
    assert missing is not None
    raise missing


def ask(library: str | None, window_ms: int) -> dict[str, Any]:
    """The document. `error` is what stopped it as a whole; a device that failed has `call` and `code`, no values."""
    said: dict[str, Any] = {
        "library": None,
        "root": os.geteuid() == 0,
        "window_ms": window_ms,
        "error": None,
        "devices": [],
    }
    try:
        dcmi = Dcmi(library)
        said["library"] = dcmi.library
        code = dcmi.init()
        if code != 0:
            return said | {"error": {"call": "dcmi_init", "code": code}}
        code, cards = dcmi.cards()
        if code != 0:
            return said | {"error": {"call": "dcmi_get_card_list", "code": code}}
        return said | {"devices": list(_devices(dcmi, cards, window_ms))}
    except OSError as error:
        return said | {"error": {"call": "dlopen", "words": str(error)}}
    except AttributeError as error:
        return said | {"error": {"call": "dlsym", "words": str(error)}}


def _devices(dcmi: Dcmi, cards: list[int], window_ms: int) -> Iterator[dict[str, Any]]:
    for card in cards:
        code, count = dcmi.chips(card)
        if code != 0:
            yield {"card": card, "device": None, "call": "dcmi_get_device_id_in_card", "code": code}
            continue
        for device in range(count):
            sys.stderr.write(f"{card}/{device} ")
            sys.stderr.flush()
            code, values = dcmi.bandwidth(card, device, window_ms)
            where = {"card": card, "device": device}
            yield where | (values if code == 0 else {"call": "dcmi_get_pcie_link_bandwidth_info", "code": code})


def _window(text: str) -> int:
    milliseconds = int(text)
    if not 1 <= milliseconds <= LONGEST_WINDOW_MS:
        raise argparse.ArgumentTypeError(f"not between 1 and {LONGEST_WINDOW_MS} ms: the call blocks for that long")
    return milliseconds


def main() -> None:
    """Exit: 0 with a document on stdout, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="dcmi_helper", description="PCIe bandwidth of every NPU, as JSON.")
    parser.add_argument("--window-ms", type=_window, default=100, help="how long each device is watched (100)")
    parser.add_argument("--library", help="libdcmi.so; default: where the driver installs it")
    arguments = parser.parse_args()
    # The driver's libraries print messages of their own to stdout.
    answer = os.dup(1)
    os.dup2(2, 1)
    text = json.dumps(ask(arguments.library, arguments.window_ms))
    with os.fdopen(answer, "w") as stdout:
        stdout.write(text + "\n")


if __name__ == "__main__":
    main()
