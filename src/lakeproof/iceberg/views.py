"""`$snapshots` and its siblings, as Arrow tables."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.table import Table

VIEWS = ("snapshots", "history", "files", "manifests", "partitions", "refs", "entries")


def view(table: Table, name: str) -> pa.Table:
    """The view `name` (without the `$`; `snapshots_view` is `snapshots`) of the table."""
    raise NotImplementedError
