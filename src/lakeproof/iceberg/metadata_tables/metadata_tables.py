"""Which metadata tables there are, and what each holds: `default.t.files`, `default.t.snapshots` and so on."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.metadata_tables.files import BOTH, DATA, DELETES, entries, files
from lakeproof.iceberg.metadata_tables.history import history, metadata_log, refs, snapshots
from lakeproof.iceberg.metadata_tables.manifests import all_manifests, manifests
from lakeproof.iceberg.metadata_tables.partitions import partitions
from lakeproof.iceberg.metadata_tables.position_deletes import position_deletes

OF_A_SNAPSHOT: dict[str, Callable[[Table, Snapshot | None], pa.Table]] = {
    "files": lambda table, at: files(table, [at], BOTH),
    "data_files": lambda table, at: files(table, [at], DATA),
    "delete_files": lambda table, at: files(table, [at], DELETES),
    "entries": lambda table, at: entries(table, [at]),
    "manifests": manifests,
    "partitions": partitions,
    "position_deletes": position_deletes,
}
OF_THE_TABLE: dict[str, Callable[[Table], pa.Table]] = {
    "snapshots": snapshots,
    "history": history,
    "refs": refs,
    "metadata_log_entries": metadata_log,
    "all_files": lambda table: files(table, table.metadata.snapshots, BOTH),
    "all_data_files": lambda table: files(table, table.metadata.snapshots, DATA),
    "all_delete_files": lambda table: files(table, table.metadata.snapshots, DELETES),
    "all_entries": lambda table: entries(table, table.metadata.snapshots),
    "all_manifests": lambda table: all_manifests(table, table.metadata.snapshots),
}
METADATA_TABLES = (*OF_A_SNAPSHOT, *OF_THE_TABLE)


def metadata_table(table: Table, name: str, snapshot: Snapshot | None = None, *, travels: bool = False) -> pa.Table:
    """The metadata table of that name; `snapshot` is the one that is looked at where `travels` says so."""
    wanted = name.lower()
    place = f"table {'.'.join(table.name())}.{wanted}"
    with translate_errors(place):
        if wanted in OF_A_SNAPSHOT:
            return OF_A_SNAPSHOT[wanted](table, snapshot if travels else table.current_snapshot())
        if wanted not in OF_THE_TABLE:
            known = ", ".join(sorted(METADATA_TABLES))
            raise InvalidInput(f"there is no metadata table `{name}`", place=place, hint=f"known are {known}")
        if travels:
            raise InvalidInput(
                f"`{wanted}` is not of one snapshot, and cannot be read at another",
                place=place,
                hint=f"time travel has {', '.join(sorted(OF_A_SNAPSHOT))}",
            )
        return OF_THE_TABLE[wanted](table)
