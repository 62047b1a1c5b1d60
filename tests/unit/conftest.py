"""Unit tests run as a user who has just been made: no home, no git configuration, no caches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import surroundings


@pytest.fixture(scope="package", autouse=True)
def no_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    before = dict(os.environ)
    after = surroundings.homeless(before, home)
    os.environ.clear()
    os.environ.update(after)
    yield home
    os.environ.clear()
    os.environ.update(before)
