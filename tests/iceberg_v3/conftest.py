from pathlib import Path

import pytest
from lakehouse import Lakehouse

import lakeproof.iceberg.reading.manifest_cache as cache_module


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lakehouse:
    """A fresh lakehouse whose manifest cache is its own."""
    made = Lakehouse(tmp_path)
    monkeypatch.setattr(cache_module, "_shared", made.cache)
    return made
