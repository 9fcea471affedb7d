"""Settings of the session for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakeproof.spark.lake import Lake


@contextmanager
def setting(lake: Lake, name: str, value: str) -> Iterator[None]:
    lake.spark.conf.set(name, value)
    try:
        yield
    finally:
        lake.spark.conf.unset(name)
