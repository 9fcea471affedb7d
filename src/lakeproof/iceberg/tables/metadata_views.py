"""`$snapshots` and its siblings, as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyiceberg.table import Table

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.reading.verifying import verify_head

SNAPSHOTS = pa.schema(
    [
        ("id", pa.int64()),
        ("parentId", pa.int64()),
        ("timeMillis", pa.int64()),
        ("numAddedFiles", pa.int64()),
        ("numDeletedFiles", pa.int64()),
        ("manifestListLocation", pa.string()),
    ]
)

NUMBERS = ("snapshot_id", "sequence_number", "file_sequence_number")
PARTITIONS = (
    pa.field("spec_id", pa.int32()),
    pa.field("record_count", pa.int64()),
    pa.field("file_count", pa.int32()),
    pa.field("total_data_file_size_in_bytes", pa.int64()),
    pa.field("position_delete_record_count", pa.int64()),
    pa.field("position_delete_file_count", pa.int32()),
    pa.field("equality_delete_record_count", pa.int64()),
    pa.field("equality_delete_file_count", pa.int32()),
    pa.field("last_updated_at", pa.timestamp("ms")),
    pa.field("last_updated_snapshot_id", pa.int64()),
)


def snapshots(table: Table) -> pa.Table:
    """One row per snapshot, oldest first; the first has parent -1."""
    rows = []
    for snapshot in sorted(table.metadata.snapshots, key=lambda each: (each.timestamp_ms, each.sequence_number or 0)):
        said = dict(snapshot.summary.additional_properties) if snapshot.summary else {}
        rows.append(
            {
                "id": snapshot.snapshot_id,
                "parentId": -1 if snapshot.parent_snapshot_id is None else snapshot.parent_snapshot_id,
                "timeMillis": snapshot.timestamp_ms,
                "numAddedFiles": int(said.get("added-data-files", 0)),
                "numDeletedFiles": int(said.get("deleted-data-files", 0)),
                "manifestListLocation": snapshot.manifest_list,
            }
        )
    return pa.Table.from_pylist(rows, schema=SNAPSHOTS)


_VIEWS: dict[str, Callable[[Table], pa.Table]] = {
    "snapshots": snapshots,
    "history": lambda table: table.inspect.history(),
    "files": lambda table: table.inspect.files(),
    "manifests": lambda table: table.inspect.manifests(),
    "partitions": lambda table: table.inspect.partitions(),
    "refs": lambda table: table.inspect.refs(),
    "entries": lambda table: table.inspect.entries(),
}
VIEWS = tuple(_VIEWS)


def view(table: Table, name: str) -> pa.Table:
    """The view `name` (without the `$`; `snapshots_view` is `snapshots`) of the table."""
    wanted = name.lower().removesuffix("_view")
    if wanted not in _VIEWS:
        raise InvalidInput(
            f"there is no view `${name}`",
            place=f"table {'.'.join(table.name())}",
            hint=f"views: {', '.join('$' + each for each in VIEWS)}",
        )
    with translate_errors(f"view {'.'.join(table.name())}${wanted}"):
        if table.current_snapshot() is None and wanted in ("partitions", "entries"):
            return _empty(table, wanted)
        verify_head(table)
        return _plain(_VIEWS[wanted](table))


def _empty(table: Table, name: str) -> pa.Table:
    """The view of a table without snapshots, which PyIceberg cannot make: its columns and no rows."""
    files = _plain(table.inspect.files()).schema
    if name == "partitions":
        return pa.schema([files.field("partition"), *PARTITIONS]).empty_table()
    of_file = [field for field in files if field.name != "readable_metrics"]
    numbers = [("status", pa.int8())] + [(each, pa.int64()) for each in NUMBERS]
    fields = [*(pa.field(*pair) for pair in numbers), pa.field("data_file", pa.struct(of_file))]
    return pa.schema([*fields, files.field("readable_metrics")]).empty_table()


def _plain(found: pa.Table) -> pa.Table:
    """The same table without dictionary columns, which not every reader takes."""
    for at, field in enumerate(found.schema):
        if pa.types.is_dictionary(field.type):
            found = found.set_column(at, field.name, found.column(at).cast(field.type.value_type))
    return found
