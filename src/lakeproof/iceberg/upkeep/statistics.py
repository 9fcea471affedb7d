"""Statistics of a snapshot in a Puffin file that the table's metadata names: how many different values a column has."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import SetStatisticsUpdate

from lakeproof.commit.driver import certainly_failed
from lakeproof.iceberg.committing.retrying import change_metadata, commit_updates
from lakeproof.iceberg.committing.table_access import remove_files
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.tables.refs import known_snapshot

_MAGIC, _KIND = b"PFA1", "apache-datasketches-theta-v1"


class ColumnSketch(NamedTuple):
    """A theta sketch of a column's values, and how many different ones it says there are."""

    field_id: int
    sketch: bytes
    distinct: int


def set_statistics(table: Table, snapshot: Snapshot, sketches: Sequence[ColumnSketch]) -> str:
    """The statistics of a snapshot, in the place of older ones; the path of their file."""
    path = f"{table.location().rstrip('/')}/metadata/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    blobs = [_blob(snapshot, each) for each in sketches]
    text, footer = _puffin([each.sketch for each in sketches], blobs)
    told = {
        **{"snapshot-id": snapshot.snapshot_id, "statistics-path": path},
        **{"file-size-in-bytes": len(text), "file-footer-size-in-bytes": footer, "blob-metadata": blobs},
    }
    update = SetStatisticsUpdate.model_validate({"statistics": told, "snapshot-id": snapshot.snapshot_id})

    def change(newest: Table) -> Table:
        known_snapshot(newest, snapshot.snapshot_id)
        return commit_updates(newest, [], [update])

    try:
        with translate_errors(f"file {path}"), table.io.new_output(path).create() as stream:
            stream.write(text)
        change_metadata(table, change)
    except BaseException as error:
        if certainly_failed(error):
            remove_files(table, [path])
        raise
    return path


def _blob(snapshot: Snapshot, sketch: ColumnSketch) -> dict[str, Any]:
    return {
        **{"type": _KIND, "fields": [sketch.field_id], "snapshot-id": snapshot.snapshot_id},
        **{"sequence-number": snapshot.sequence_number or 0, "properties": {"ndv": str(sketch.distinct)}},
    }


def _puffin(contents: Sequence[bytes], blobs: Sequence[dict[str, Any]]) -> tuple[bytes, int]:
    """The bytes of the file, and how many of them are its footer (the Puffin spec: magic, blobs, footer)."""
    body, described = _MAGIC, []
    for content, blob in zip(contents, blobs, strict=True):
        described.append({**blob, "offset": len(body), "length": len(content)})
        body += content
    payload = json.dumps({"blobs": described, "properties": {"created-by": "lakeproof"}}).encode()
    footer = _MAGIC + payload + struct.pack("<ii", len(payload), 0) + _MAGIC
    return body + footer, len(footer)
