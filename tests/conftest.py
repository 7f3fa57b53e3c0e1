"""What holds for the whole suite."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# Two busy cores make any single example slow now and then; pytest-timeout bounds the test as a whole.
settings.register_profile("npu-watchd", deadline=None)
settings.load_profile("npu-watchd")

# A shell starts what it puts into the background with Ctrl-C ignored, and every child of ours would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")
