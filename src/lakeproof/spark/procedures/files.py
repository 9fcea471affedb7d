"""Procedures that write files anew, and remove those that nothing names."""

from __future__ import annotations

from typing import Any

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.tables.tables import joined_name
from lakeproof.iceberg.upkeep.moved_table import rewrite_table_path
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakeproof.spark.compaction.compaction import rewrite_data_files
from lakeproof.spark.compaction.delete_files import rewrite_position_delete_files
from lakeproof.spark.compaction.sorting import sorting_of
from lakeproof.spark.engine import Engine
from lakeproof.spark.procedures.calling import INT, LONG, TEXT, Procedure, Row, at_least_one, table_named
from lakeproof.spark.statements.instants import epoch_millis
from lakeproof.spark.statements.names import qualified


def _compact(
    engine: Engine,
    table: str,
    strategy: str = "binpack",
    sort_order: str | None = None,
    options: dict[str, str] | None = None,
    where: str | None = None,
    branch: str | None = None,
) -> list[Row]:
    name = qualified(engine, table)
    if branch not in (None, "main"):
        name = f"{name}.{joined_name([f'branch_{branch}'])}"
    found = engine.load(name)
    if strategy.lower() not in ("binpack", "sort"):
        raise InvalidInput(f"there is no strategy `{strategy}`", hint="use binpack or sort")
    if strategy.lower() == "binpack" and sort_order is not None:
        raise InvalidInput("sort_order goes with strategy => 'sort'", hint="leave one of them out")
    order = sorting_of(found, sort_order) if strategy.lower() == "sort" else None
    return [rewrite_data_files(engine, name, where, options or {}, order)[:5]]


def _compact_deletes(
    engine: Engine, table: str, options: dict[str, str] | None = None, where: str | None = None
) -> list[Row]:
    name = qualified(engine, table)
    engine.load(name)
    return [rewrite_position_delete_files(engine, name, where, options or {})]


def _manifests(
    engine: Engine,
    table: str,
    use_caching: bool = False,
    spec_id: int | None = None,
    sort_by: tuple[Any, ...] = (),
) -> list[Row]:
    """`use_caching` is about Spark's cache, and manifests are read by the driver: there is nothing to cache."""
    found = table_named(engine, table)
    chosen = found.spec().spec_id if spec_id is None else spec_id
    done = rewrite_manifests(found, spec_id=chosen, sort_by=[str(each) for each in sort_by])
    return [(done.rewritten, done.added)]


def _orphans(
    engine: Engine,
    table: str,
    older_than: Any = None,
    location: str | None = None,
    dry_run: bool = False,
    max_concurrent_deletes: int | None = None,
    file_list_view: str | None = None,
    equal_schemes: dict[str, str] | None = None,
    equal_authorities: dict[str, str] | None = None,
    prefix_mismatch_mode: str | None = None,
    prefix_listing: bool = False,
    stream_results: bool = False,
    allow_young: bool = False,
) -> list[Row]:
    """Paths are compared without their schemes where several name one store; how files are removed is ours to say."""
    at_least_one(max_concurrent_deletes, "max_concurrent_deletes")
    for name, value in (("file_list_view", file_list_view), ("equal_authorities", equal_authorities)):
        if value:
            raise InvalidInput(f"`{name}` is not supported", hint="leave it out: the table's own folders are listed")
    if equal_schemes and equal_schemes != {"s3a,s3n": "s3"}:
        raise InvalidInput("`equal_schemes` is fixed", hint="s3, s3a and s3n are one; leave it out")
    if prefix_mismatch_mode is not None and prefix_mismatch_mode.upper() != "ERROR":
        raise InvalidInput("`prefix_mismatch_mode` is not supported", hint="a file under another scheme is left alone")
    instant = None if older_than is None else epoch_millis(engine.gateway, older_than)
    found = remove_orphan_files(
        table_named(engine, table),
        older_than_ms=instant,
        location=location,
        dry_run=dry_run,
        allow_young=allow_young,
    )
    return [(path,) for path in found.files]


def _moved(
    engine: Engine,
    table: str,
    source_prefix: str,
    target_prefix: str,
    start_version: str | None = None,
    end_version: str | None = None,
    staging_location: str | None = None,
    create_file_list: bool = True,
) -> list[Row]:
    done = rewrite_table_path(
        table_named(engine, table),
        source_prefix,
        target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging=staging_location,
        with_list=create_file_list,
    )
    return [(done.latest, done.file_list or "N/A", done.manifests, done.delete_files)]


FILE_PROCEDURES: dict[str, Procedure] = {
    "rewrite_data_files": Procedure(
        ("table", "strategy?", "sort_order?", "options?", "where?", "branch?"),
        (
            ("rewritten_data_files_count", INT),
            ("added_data_files_count", INT),
            ("rewritten_bytes_count", LONG),
            ("failed_data_files_count", INT),
            ("removed_delete_files_count", INT),
        ),
        _compact,
    ),
    "rewrite_position_delete_files": Procedure(
        ("table", "options?", "where?"),
        (
            ("rewritten_delete_files_count", INT),
            ("added_delete_files_count", INT),
            ("rewritten_bytes_count", LONG),
            ("added_bytes_count", LONG),
        ),
        _compact_deletes,
    ),
    "rewrite_manifests": Procedure(
        ("table", "use_caching?", "spec_id?", "sort_by?"),
        (("rewritten_manifests_count", INT), ("added_manifests_count", INT)),
        _manifests,
    ),
    "remove_orphan_files": Procedure(
        (
            *("table", "older_than?", "location?", "dry_run?", "max_concurrent_deletes?", "file_list_view?"),
            *("equal_schemes?", "equal_authorities?", "prefix_mismatch_mode?", "prefix_listing?", "stream_results?"),
            "allow_young?",
        ),
        (("orphan_file_location", TEXT),),
        _orphans,
    ),
    "rewrite_table_path": Procedure(
        (
            *("table", "source_prefix", "target_prefix", "start_version?", "end_version?", "staging_location?"),
            "create_file_list?",
        ),
        (
            ("latest_version", TEXT),
            ("file_list_location", TEXT),
            ("rewritten_manifest_file_paths_count", INT),
            ("rewritten_delete_file_paths_count", INT),
        ),
        _moved,
    ),
}
