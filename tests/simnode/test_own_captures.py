"""Our own captures are what the simulator prints: none is stale, none is missing, none is a leftover."""

from __future__ import annotations

import pytest

from tests.simnode.own_captures import FOLDER, OwnCapture, everything, manifest


@pytest.mark.parametrize("capture", everything(), ids=lambda capture: capture.file)
def test_a_capture_is_what_the_simulator_prints(capture: OwnCapture) -> None:
    assert (FOLDER / capture.file).read_bytes() == capture.text.encode()


def test_the_folder_and_its_manifest_hold_these_captures_and_no_other() -> None:
    captures = everything()
    assert {path.name for path in FOLDER.iterdir()} == {capture.file for capture in captures} | {"MANIFEST.tsv"}
    assert len({capture.file for capture in captures}) == len(captures)
    assert (FOLDER / "MANIFEST.tsv").read_text() == manifest(captures)
