"""Procedures that move branches, publish what was staged, and expire snapshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.publishing import MovedBranch, cherrypick_snapshot, fast_forward, publish_changes
from lakeproof.iceberg.tables.refs import (
    ancestors,
    create_branch,
    create_tag,
    drop_ref,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
    snapshot_of_version,
)
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.spark.engine import Engine
from lakeproof.spark.procedures.calling import LONG, TEXT, Procedure, Row, at_least_one, number, table_named
from lakeproof.spark.statements.instants import epoch_millis


def _moved(table: Table, after: Table) -> list[Row]:
    before, now = table.current_snapshot(), after.current_snapshot()
    return [(before and before.snapshot_id, now and now.snapshot_id)]


def _rollback(engine: Engine, table: str, snapshot_id: int) -> list[Row]:
    found = table_named(engine, table)
    return _moved(found, rollback_to_snapshot(found, snapshot_id))


def _rollback_time(engine: Engine, table: str, timestamp: Any) -> list[Row]:
    found = table_named(engine, table)
    return _moved(found, rollback_to_timestamp(found, epoch_millis(engine.gateway, timestamp)))


def _set_current(engine: Engine, table: str, snapshot_id: int | None = None, ref: str | None = None) -> list[Row]:
    found = table_named(engine, table)
    if (snapshot_id is None) == (ref is None):
        raise InvalidInput("give either snapshot_id or ref")
    chosen = snapshot_of_version(found, ref).snapshot_id if ref is not None else snapshot_id
    assert chosen is not None
    return _moved(found, set_current_snapshot(found, chosen))


def _published(moved: MovedBranch) -> list[Row]:
    return [(moved.before, moved.after)]


def _cherrypick(engine: Engine, table: str, snapshot_id: int) -> list[Row]:
    return _published(cherrypick_snapshot(table_named(engine, table), snapshot_id, engine.watch.on_phase))


def _publish(engine: Engine, table: str, wap_id: str) -> list[Row]:
    return _published(publish_changes(table_named(engine, table), wap_id, engine.watch.on_phase))


def _forward(engine: Engine, table: str, branch: str, to: str) -> list[Row]:
    done = fast_forward(table_named(engine, table), branch, to)
    return [(branch, done.before, done.after)]


def _ancestors(engine: Engine, table: str, snapshot_id: int | None = None) -> list[Row]:
    found = ancestors(table_named(engine, table), snapshot_id)
    return [(each.snapshot_id, each.timestamp_ms) for each in found]


def _ref(kind: str) -> Callable[..., list[Row]]:
    make = create_branch if kind == "branch" else create_tag

    def run(engine: Engine, table: str, name: str, snapshot_id: int | None = None) -> list[Row]:
        after = make(table_named(engine, table), name, snapshot_id)
        return [(name, after.metadata.refs[name].snapshot_id)]

    return run


def _drop(kind: str) -> Callable[..., list[Row]]:
    def run(engine: Engine, table: str, name: str, if_exists: bool = False) -> list[Row]:
        drop_ref(table_named(engine, table), name, kind=kind, if_exists=if_exists)
        return []

    return run


def _expire(
    engine: Engine,
    table: str,
    older_than: Any = None,
    retain_last: int | None = None,
    max_concurrent_deletes: int | None = None,
    stream_results: bool = False,
    snapshot_ids: tuple[Any, ...] = (),
    clean_expired_metadata: bool = False,
    dry_run: bool = False,
) -> list[Row]:
    """`stream_results` and `max_concurrent_deletes` say how Iceberg removes files; here the driver removes them."""
    at_least_one(max_concurrent_deletes, "max_concurrent_deletes")
    done = expire_snapshots(
        table_named(engine, table),
        older_than_ms=None if older_than is None else epoch_millis(engine.gateway, older_than),
        retain_last=retain_last,
        snapshot_ids=[number(each, "snapshot_ids") for each in snapshot_ids],
        clean_metadata=clean_expired_metadata,
        dry_run=dry_run,
    )
    positions, values = len(done.position_deletes), len(done.equality_deletes)
    lists = (len(done.manifests), len(done.manifest_lists), len(done.statistics))
    return [(len(done.content_files) - positions - values, positions, values, *lists)]


_MOVE = (("previous_snapshot_id", LONG), ("current_snapshot_id", LONG))
_PICK = (("source_snapshot_id", LONG), ("current_snapshot_id", LONG))
_MADE = (("name", TEXT), ("snapshot_id", LONG))
SNAPSHOT_PROCEDURES: dict[str, Procedure] = {
    "rollback_to_snapshot": Procedure(("table", "snapshot_id"), _MOVE, _rollback),
    "rollback_to_timestamp": Procedure(("table", "timestamp"), _MOVE, _rollback_time),
    "set_current_snapshot": Procedure(("table", "snapshot_id?", "ref?"), _MOVE, _set_current),
    "cherrypick_snapshot": Procedure(("table", "snapshot_id"), _PICK, _cherrypick),
    "publish_changes": Procedure(("table", "wap_id"), _PICK, _publish),
    "fast_forward": Procedure(
        ("table", "branch", "to"), (("branch_updated", TEXT), ("previous_ref", LONG), ("updated_ref", LONG)), _forward
    ),
    "ancestors_of": Procedure(("table", "snapshot_id?"), (("snapshot_id", LONG), ("timestamp", LONG)), _ancestors),
    "expire_snapshots": Procedure(
        (
            *("table", "older_than?", "retain_last?", "max_concurrent_deletes?", "stream_results?", "snapshot_ids?"),
            *("clean_expired_metadata?", "dry_run?"),
        ),
        (
            ("deleted_data_files_count", LONG),
            ("deleted_position_delete_files_count", LONG),
            ("deleted_equality_delete_files_count", LONG),
            ("deleted_manifest_files_count", LONG),
            ("deleted_manifest_lists_count", LONG),
            ("deleted_statistics_files_count", LONG),
        ),
        _expire,
    ),
    "create_branch": Procedure(("table", "name", "snapshot_id?"), _MADE, _ref("branch")),
    "create_tag": Procedure(("table", "name", "snapshot_id?"), _MADE, _ref("tag")),
    "drop_branch": Procedure(("table", "name", "if_exists?"), (), _drop("branch")),
    "drop_tag": Procedure(("table", "name", "if_exists?"), (), _drop("tag")),
}
