"""A command whose scan snapshot was expired while it ran: its files are gone, so it runs again from the head."""

from __future__ import annotations

from lakeproof.commit import Mode, RunAgain
from lakeproof.commit.checks import history_known
from lakeproof.errors import LakeproofError
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine


def again_if_expired(engine: Engine, name: str, table: Table, mode: Mode) -> RunAgain | None:
    """Whether the command that has failed should run again; `None`: the snapshot that it read is still there."""
    scanned = table.current_snapshot()
    if scanned is None:
        return None
    try:
        newest = engine.load(name)
    except LakeproofError:
        return None
    same = newest.metadata.table_uuid == table.metadata.table_uuid
    if not same or newest.snapshot_by_id(scanned.snapshot_id) is not None:
        return None
    conflict = history_known(scanned.snapshot_id)
    return None if conflict is None else RunAgain(conflict, mode)
