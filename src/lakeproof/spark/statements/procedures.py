"""CALL system.…: management of a table's snapshots and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.refs import (
    create_branch,
    create_tag,
    drop_ref,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
    snapshot_of_version,
)
from lakeproof.iceberg.upkeep.add_files import add_files
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakeproof.spark.compaction.compaction import rewrite_data_files
from lakeproof.spark.compaction.delete_files import rewrite_position_delete_files
from lakeproof.spark.engine import Engine
from lakeproof.spark.statements.instants import epoch_millis, session_zone
from lakeproof.spark.statements.local_rows import local_rows
from lakeproof.spark.statements.migrate import migrate
from lakeproof.spark.statements.names import qualified
from lakeproof.spark.streams.change_feed import Feed, change_feed, chosen_window, create_view, identifier_of
from lakeproof.sql.statements import ProcedureCall

_LONG, _TEXT, _BOOL = spark.LongType(), spark.StringType(), spark.BooleanType()
Row = tuple[Any, ...]


class Procedure(NamedTuple):
    """The names of its parameters (a `?` means optional), of its result's columns, and what it does."""

    parameters: tuple[str, ...]
    result: tuple[tuple[str, spark.DataType], ...]
    run: Callable[..., Sequence[Row]]


def run_procedure(engine: Engine, called: ProcedureCall) -> DataFrame:
    """The result of a procedure, as rows."""
    procedure = PROCEDURES.get(called.procedure)
    if procedure is None:
        known = ", ".join(sorted(PROCEDURES))
        raise InvalidInput(f"there is no procedure `{called.procedure}`", hint=f"known are {known}")
    rows = procedure.run(engine, **_bound(called, procedure))
    schema = spark.StructType([spark.StructField(name, kind, True) for name, kind in procedure.result])
    return local_rows(engine.gateway.spark, rows, schema)


def _bound(called: ProcedureCall, procedure: Procedure) -> dict[str, Any]:
    names = [name.rstrip("?") for name in procedure.parameters]
    given: dict[str, Any] = {}
    for position, argument in enumerate(called.arguments):
        name = argument.name or (names[position] if position < len(names) else None)
        if name not in names or name in given:
            hint = f"its parameters are {', '.join(names)}"
            raise InvalidInput(f"`{called.procedure}` has no parameter {argument.name or position + 1}", hint=hint)
        given[name] = argument.value
    missing = [name for name in procedure.parameters if not name.endswith("?") and name not in given]
    if missing:
        raise InvalidInput(f"`{called.procedure}` needs {', '.join(missing)}", hint=f"parameters: {', '.join(names)}")
    return given


def _table(engine: Engine, name: str) -> Table:
    return engine.load(qualified(engine, name))


def _number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"`{name}` must be a whole number, not {value!r}")
    return value


def _moved(table: Table, after: Table) -> list[Row]:
    before, now = table.current_snapshot(), after.current_snapshot()
    return [(before and before.snapshot_id, now and now.snapshot_id)]


def _rollback(engine: Engine, table: str, snapshot_id: Any) -> list[Row]:
    found = _table(engine, table)
    return _moved(found, rollback_to_snapshot(found, _number(snapshot_id, "snapshot_id")))


def _rollback_time(engine: Engine, table: str, timestamp: Any) -> list[Row]:
    found = _table(engine, table)
    return _moved(found, rollback_to_timestamp(found, epoch_millis(engine.gateway, timestamp)))


def _set_current(engine: Engine, table: str, snapshot_id: Any = None, ref: str | None = None) -> list[Row]:
    found = _table(engine, table)
    if (snapshot_id is None) == (ref is None):
        raise InvalidInput("give either snapshot_id or ref")
    chosen = snapshot_of_version(found, ref).snapshot_id if ref is not None else _number(snapshot_id, "snapshot_id")
    return _moved(found, set_current_snapshot(found, chosen))


def _expire(
    engine: Engine,
    table: str,
    older_than: Any = None,
    retain_last: Any = None,
    snapshot_ids: tuple[int, ...] = (),
    dry_run: bool = False,
) -> list[Row]:
    instant = None if older_than is None else epoch_millis(engine.gateway, older_than)
    last = None if retain_last is None else _number(retain_last, "retain_last")
    done = expire_snapshots(
        _table(engine, table),
        older_than_ms=instant,
        retain_last=last,
        snapshot_ids=snapshot_ids,
        dry_run=dry_run,
    )
    return [(len(done.snapshots), len(done.content_files), len(done.manifests), len(done.manifest_lists))]


def _orphans(
    engine: Engine, table: str, older_than: Any = None, dry_run: bool = False, allow_young: bool = False
) -> list[Row]:
    instant = None if older_than is None else epoch_millis(engine.gateway, older_than)
    found = remove_orphan_files(_table(engine, table), older_than_ms=instant, dry_run=dry_run, allow_young=allow_young)
    return [(path, found.removed) for path in found.files]


def _rewrite(engine: Engine, table: str) -> list[Row]:
    done = rewrite_manifests(_table(engine, table))
    return [(done.rewritten, done.added)]


def _ref(kind: str) -> Callable[..., list[Row]]:
    make = create_branch if kind == "branch" else create_tag

    def run(engine: Engine, table: str, name: str, snapshot_id: Any = None) -> list[Row]:
        after = make(_table(engine, table), name, None if snapshot_id is None else _number(snapshot_id, "snapshot_id"))
        return [(name, after.metadata.refs[name].snapshot_id)]

    return run


def _drop(kind: str) -> Callable[..., list[Row]]:
    def run(engine: Engine, table: str, name: str, if_exists: bool = False) -> list[Row]:
        drop_ref(_table(engine, table), name, kind=kind, if_exists=if_exists)
        return []

    return run


def _add_files(engine: Engine, table: str, source_table: str) -> list[Row]:
    """`source_table` is a path, or Spark's `parquet.`path`` form."""
    path = source_table.strip("`").removeprefix("parquet.").strip("`")
    done = add_files(_table(engine, table), [path], time_zone=session_zone(engine.gateway))
    snapshot = done.table.snapshot_by_id(done.snapshot_id) if done.snapshot_id is not None else None
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary else {}
    return [(int(said.get("added-data-files", 0)), int(said.get("added-records", 0)))]


def _migrate(engine: Engine, table: str) -> list[Row]:
    return [(migrate(engine, table),)]


def _compact(
    engine: Engine,
    table: str,
    strategy: str = "binpack",
    sort_order: str | None = None,
    options: tuple[Any, ...] = (),
    where: str | None = None,
) -> list[Row]:
    name = qualified(engine, table)
    engine.load(name)
    if strategy.lower() != "binpack" or sort_order is not None:
        raise InvalidInput(f"there is no strategy `{strategy}`", hint="use binpack")
    done = rewrite_data_files(engine, name, where, _options(options))
    return [done[:5]]


def _compact_deletes(engine: Engine, table: str, options: tuple[Any, ...] = ()) -> list[Row]:
    name, given = qualified(engine, table), _options(options)
    engine.load(name)
    unknown = set(given) - {"rewrite-all"}
    if unknown:
        raise InvalidInput(f"there is no option `{min(unknown)}`", hint="known is rewrite-all")
    return [rewrite_position_delete_files(engine, name, rewrite_all=given.get("rewrite-all") == "true")]


def _options(listed: tuple[Any, ...]) -> dict[str, str]:
    """`map('name', 'value', …)`."""
    if len(listed) % 2:
        raise InvalidInput("`options` needs a value for each name", hint="write map('name', 'value', …)")
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in listed]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _changelog(
    engine: Engine,
    table: str,
    changelog_view: str | None = None,
    options: tuple[Any, ...] = (),
    compute_updates: bool | None = None,
    identifier_columns: tuple[str, ...] = (),
    net_changes: bool = False,
    remove_carryovers: bool = True,
) -> list[Row]:
    found = _table(engine, table)
    wants_updates = bool(identifier_columns) if compute_updates is None else compute_updates
    updates = identifier_of(found, identifier_columns) if wants_updates else None
    feed = Feed(remove_carryovers, net_changes, updates)
    name = changelog_view or f"{found.name()[-1]}_changes"
    create_view(name, change_feed(engine, found, chosen_window(found, _options(options)), feed))
    return [(name,)]


_MOVE = (("previous_snapshot_id", _LONG), ("current_snapshot_id", _LONG))
PROCEDURES: dict[str, Procedure] = {
    "rollback_to_snapshot": Procedure(("table", "snapshot_id"), _MOVE, _rollback),
    "rollback_to_timestamp": Procedure(("table", "timestamp"), _MOVE, _rollback_time),
    "set_current_snapshot": Procedure(("table", "snapshot_id?", "ref?"), _MOVE, _set_current),
    "expire_snapshots": Procedure(
        ("table", "older_than?", "retain_last?", "snapshot_ids?", "dry_run?"),
        (
            ("expired_snapshots_count", _LONG),
            ("deleted_content_files_count", _LONG),
            ("deleted_manifests_count", _LONG),
            ("deleted_manifest_lists_count", _LONG),
        ),
        _expire,
    ),
    "remove_orphan_files": Procedure(
        ("table", "older_than?", "dry_run?", "allow_young?"),
        (("orphan_file_location", _TEXT), ("removed", _BOOL)),
        _orphans,
    ),
    "rewrite_manifests": Procedure(
        ("table",), (("rewritten_manifests_count", _LONG), ("added_manifests_count", _LONG)), _rewrite
    ),
    "rewrite_data_files": Procedure(
        ("table", "strategy?", "sort_order?", "options?", "where?"),
        (
            ("rewritten_data_files_count", _LONG),
            ("added_data_files_count", _LONG),
            ("rewritten_bytes_count", _LONG),
            ("failed_data_files_count", _LONG),
            ("removed_delete_files_count", _LONG),
        ),
        _compact,
    ),
    "rewrite_position_delete_files": Procedure(
        ("table", "options?"),
        (
            ("rewritten_delete_files_count", _LONG),
            ("added_delete_files_count", _LONG),
            ("rewritten_bytes_count", _LONG),
            ("added_bytes_count", _LONG),
        ),
        _compact_deletes,
    ),
    "create_branch": Procedure(
        ("table", "name", "snapshot_id?"), (("name", _TEXT), ("snapshot_id", _LONG)), _ref("branch")
    ),
    "create_tag": Procedure(("table", "name", "snapshot_id?"), (("name", _TEXT), ("snapshot_id", _LONG)), _ref("tag")),
    "drop_branch": Procedure(("table", "name", "if_exists?"), (), _drop("branch")),
    "drop_tag": Procedure(("table", "name", "if_exists?"), (), _drop("tag")),
    "add_files": Procedure(
        ("table", "source_table"), (("added_files_count", _LONG), ("added_records_count", _LONG)), _add_files
    ),
    "create_changelog_view": Procedure(
        (
            *("table", "changelog_view?", "options?", "compute_updates?", "identifier_columns?", "net_changes?"),
            "remove_carryovers?",
        ),
        (("changelog_view", _TEXT),),
        _changelog,
    ),
    "migrate": Procedure(("table",), (("migrated_files_count", _LONG),), _migrate),
}
