"""Avro files are verified before PyIceberg's decoder, which checks no bounds, reads them: each once a process."""

from __future__ import annotations

from pyiceberg.io import FileIO
from pyiceberg.table import Table

from lakeproof.iceberg.failures import reading_file
from lakeproof.iceberg.reading.avro import verify
from lakeproof.iceberg.reading.decode import decode_manifests
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.manifest_cache import manifests_of, read_whole

LARGE = 64 << 10  # from here on the decoder of columns, which checks bounds too, is faster than stepping over records
_verified: Recent[bool] = Recent(4096)


def verify_once(io: FileIO, path: str) -> None:
    """The manifest can be read; what is wrong with it raises."""
    _verified.get(path, lambda: _verify(io, path))


def forget_verified() -> None:
    """Every file is verified again."""
    _verified.clear()


def verify_head(table: Table) -> None:
    """What PyIceberg itself will read of the head's manifests can be read."""
    for manifest in manifests_of(table.io, table.current_snapshot()):
        with reading_file(manifest.manifest_path):
            verify_once(table.io, manifest.manifest_path)


def _verify(io: FileIO, path: str) -> bool:
    data = read_whole(io, path)
    if len(data) < LARGE:
        verify(data)
    else:
        decode_manifests([data])
    return True
