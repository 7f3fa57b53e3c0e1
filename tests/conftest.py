"""What holds for the whole suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

# Two busy cores make any single example slow now and then; pytest-timeout bounds the test as a whole.
settings.register_profile("npu-watchd", deadline=None)
settings.load_profile("npu-watchd")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the files of tests/golden anew")
