"""What holds for the whole suite."""

from __future__ import annotations

from hypothesis import settings

# Two busy cores make any single example slow now and then; pytest-timeout bounds the test as a whole.
settings.register_profile("npu-watchd", deadline=None)
settings.load_profile("npu-watchd")
