"""One Chromium for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.chromium import PROGRAM, WHY_SKIPPED, Chromium


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if PROGRAM is None:
        pytest.skip(WHY_SKIPPED)
    browser = Chromium(tmp_path_factory.mktemp("chromium"))
    try:
        yield browser
    finally:
        browser.close()
