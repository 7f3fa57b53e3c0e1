"""The helper's document: only what it says, and nothing of what does not look like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from npu_watchd.model.ids import DeviceKey
from npu_watchd.model.pcie_tools import DcmiBandwidth
from npu_watchd.model.reading import Failure, FailureKind
from npu_watchd.parsers import dcmi
from tests.parsers.texts import refused, said

DEVICE = {
    "card": 3,
    "device": 0,
    "tx_p": [0, 9, 4],
    "tx_np": [0, 0, 0],
    "tx_cpl": [0, 1, 1],
    "tx_np_latency": [0, 0, 0],
    "rx_p": [2, 2, 2],
    "rx_np": [0, 5, 3],
    "rx_cpl": [1, 8, 6],
}


def document(*devices: dict[str, Any], **more: Any) -> str:
    whole = {"library": "libdcmi.so", "root": True, "window_ms": 100, "error": None, "devices": list(devices)}
    return json.dumps(whole | more) + "\n"


def test_averages_are_bytes_per_second_by_card_and_chip() -> None:
    report = dcmi.parse(document(DEVICE))
    assert report.devices == {DeviceKey(3, 0): DcmiBandwidth(4e9, 0.0, 1e9, 2e9, 3e9, 6e9, 0.1)}
    assert report.cards == {}


@pytest.mark.parametrize("values", [[5, 9, 4], [0, 3, 4], [0, 9], [0, 9, -1], [0, 9, None], "0", None, [0, True, 0]])
def test_values_out_of_order_fail_that_device(values: Any) -> None:
    found = dcmi.parse(document(DEVICE | {"tx_p": values})).devices[DeviceKey(3, 0)]
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.UNPARSEABLE


def test_a_code_without_a_known_meaning_is_told_as_such_and_root_is_recommended() -> None:
    text = document({"card": 3, "device": 0, "call": "dcmi_x", "code": -8099}, root=False)
    assert dcmi.parse(text).devices[DeviceKey(3, 0)] == Failure(
        FailureKind.EXIT, "dcmi_x failed. ret is -8099 (unknown code); the helper did not run as root"
    )


def test_a_code_of_another_family_is_told_too() -> None:
    text = document({"card": 3, "device": 0, "call": "dcmi_x", "code": 7})
    assert dcmi.parse(text).devices[DeviceKey(3, 0)] == Failure(FailureKind.EXIT, "dcmi_x failed. ret is 7")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "[]\n",
        "{}\n",
        "null\n",
        "{\n",
        document(DEVICE).rstrip("\n"),
        document(DEVICE) + document(DEVICE),
        document(DEVICE, DEVICE),
        document(DEVICE, window_ms=0),
        document(DEVICE, window_ms=None),
        document(devices=None),
        document({"card": "3", "device": 0}),
        document({"card": 3}),
        document(error={"call": "dcmi_init"}),
        document(error="bad"),
    ],
)
def test_what_is_no_document_of_the_helper_is_refused(text: str) -> None:
    assert refused(dcmi.parse, text).kind is FailureKind.UNPARSEABLE


def test_the_helpers_own_noise_is_not_mistaken_for_a_document() -> None:
    assert said(dcmi.parse, "DrvMngGetConsoleLogLevel failed.\n" + document(DEVICE)) == (
        FailureKind.UNPARSEABLE,
        f"line 2: more than one line: {document(DEVICE)[:160]!r}".replace("\\n", "")[:-1] + "…'",
    )
