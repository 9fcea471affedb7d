"""One session and one catalog: tables are found, read at a snapshot, and written as one snapshot per command."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from lakeproof.commit import Conflict, Policy
from lakeproof.filters import ALWAYS, Expression
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED, Committed, Hook, no_hook
from lakeproof.iceberg.committing.whole_file_commits import Options, append, overwrite_partitions, overwrite_where
from lakeproof.iceberg.pyiceberg_names import Catalog, Table
from lakeproof.iceberg.tables.refs import snapshot_as_of, snapshot_of_version
from lakeproof.iceberg.tables.tables import find_table, load_table
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.reading.scan import Scan, Scans
from lakeproof.spark.writing.leftovers import removed_if_refused
from lakeproof.spark.writing.spark_write import remove_folder, write_rows

_STATEMENT = "lakeproof.statement"
_contexts: dict[str, Context] = {}


@dataclass(frozen=True)
class Context:
    """What holds for one statement while Spark analyses and runs it.

    `as_of_ms`: the instant at which every managed table is read. `dynamic`: INSERT replaces the partitions it writes.
    `pinned`: tables by name that are read as they were when the statement began. `on_phase` watches the phases of a
    write, `policy` (else the table's own) judges it, `whole_files`: a DELETE may drop files without a look inside.
    `running` is known to an INSERT, `on_rerun` hears why a command runs again, `summary` is written into its snapshot.
    `engine` is whose tables the names mean, where a session is connected to several lakes.
    """

    as_of_ms: int | None = None
    dynamic: bool = False
    pinned: Mapping[str, Table] = field(default_factory=dict)
    on_phase: Hook = no_hook
    policy: Policy | None = None
    whole_files: bool = True
    running: Any = None
    on_rerun: Callable[[Conflict], None] = lambda conflict: None
    summary: Mapping[str, str] = field(default_factory=dict)
    engine: Engine | None = None


_NO_CONTEXT = Context()


@dataclass(frozen=True)
class Append:
    """Rows are added."""


@dataclass(frozen=True)
class Overwrite:
    """Rows that match the filter are replaced; it must select whole files."""

    filter: Expression = ALWAYS


@dataclass(frozen=True)
class OverwritePartitions:
    """The partitions that are written are replaced."""


WriteMode = Append | Overwrite | OverwritePartitions


class Engine:
    """What statements, the session's catalog and the Python interface share."""

    def __init__(self, gateway: Gateway, catalog: Catalog) -> None:
        self.gateway, self.catalog = gateway, catalog
        self.scans = Scans(gateway)

    @property
    def context(self) -> Context:
        """The context of the statement that the calling JVM thread runs; callbacks see their caller's."""
        if not _contexts:
            return _NO_CONTEXT
        key = self.gateway.context.getLocalProperty(_STATEMENT)
        return _contexts.get(key or "", _NO_CONTEXT)

    @contextmanager
    def within(self, **changed: Any) -> Iterator[None]:
        """The statement that runs inside has a context of its own."""
        outer = self.gateway.context.getLocalProperty(_STATEMENT) if _contexts else None
        key = uuid.uuid4().hex
        _contexts[key] = replace(_contexts.get(outer or "", _NO_CONTEXT), engine=self, **changed)
        self.gateway.context.setLocalProperty(_STATEMENT, key)
        try:
            yield
        finally:
            self.gateway.context.setLocalProperty(_STATEMENT, outer)
            del _contexts[key]

    def find(self, name: str) -> Table | None:
        """The managed table of that name at its newest metadata (or as the statement pinned it), or `None`."""
        pinned = self.context.pinned.get(name)
        if pinned is not None:
            return pinned
        return find_table(self.catalog, name)

    def load(self, name: str) -> Table:
        """The managed table, or an `InvalidInput` that names the nearest."""
        return load_table(self.catalog, name)

    def scan(self, table: Table, *, version: str | None = None, timestamp_ms: int | None = None) -> Scan:
        """The table's rows: at a version, at an instant, at the statement's instant, else at the head."""
        instant = self.context.as_of_ms if timestamp_ms is None else timestamp_ms
        if version is not None:
            branch = table.metadata.refs.get(version)
            travels = branch is None or branch.snapshot_ref_type.value != "branch"
            found = snapshot_of_version(table, version).snapshot_id
            return self.scans.of(table, snapshot_id=found, time_travel=travels)
        if instant is not None:
            return self.scans.of(table, snapshot_id=snapshot_as_of(table, instant).snapshot_id, time_travel=True)
        head = table.current_snapshot()
        return self.scans.of(table, snapshot_id=None if head is None else head.snapshot_id)

    def shape(self, table: Table) -> Scan:
        """A scan that stands for any snapshot that is read with the current schema: what a condition says on it."""
        return self.scans.of(table, snapshot_id=None)

    def write(self, table: Table, rows: DataFrame, mode: WriteMode, *, branch: str = "main") -> Committed:
        """The rows as one snapshot on top of the branch, or no snapshot and no file."""
        context = self.context
        on_phase = context.on_phase
        on_phase(SCANNED)
        written = write_rows(self.gateway, table, rows)
        options = Options(branch=branch, on_phase=on_phase, summary=context.summary)
        with removed_if_refused(lambda: remove_folder(self.gateway, written.folder)):
            on_phase(FILES_WRITTEN)
            if isinstance(mode, Overwrite):
                return overwrite_where(table, mode.filter, written.files, options)
            if isinstance(mode, OverwritePartitions):
                return overwrite_partitions(table, written.files, options)
            return append(table, written.files, options)
