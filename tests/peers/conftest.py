"""Both engines for all tests of this folder: starting them costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from both_engines import Engines

from lakeproof.replay.sql_process import EngineMissing


@pytest.fixture(scope="package")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    try:
        both = Engines(tmp_path_factory.mktemp("one lake"))  # the blank is on purpose: paths are URIs in places
    except EngineMissing as error:
        pytest.skip(error.message)
    yield both
    both.close()


_numbers = count(1)


@pytest.fixture
def name() -> str:
    """A table name that no other test uses."""
    return f"t{next(_numbers)}"
