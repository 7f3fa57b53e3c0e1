"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.fake_tool import FakeTool, fake_tool


@pytest.fixture
def tool(tmp_path: Path) -> FakeTool:
    """A fake npu-smi that supports nothing yet, with a config beside it."""
    return fake_tool(tmp_path)
