"""One session and one catalog: tables are found, read at a snapshot, and written as one snapshot per command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from lakeproof.commit import Conflict, Policy
from lakeproof.commit.policy_text import named_policy
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Expression
from lakeproof.format import StreamBatch
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED, Committed, Hook, no_hook
from lakeproof.iceberg.committing.table_commits import POLICY_PROPERTY
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append, overwrite_partitions, overwrite_where
from lakeproof.iceberg.format_v3.metadata import require_kept
from lakeproof.iceberg.pyiceberg_names import Catalog, Table
from lakeproof.iceberg.tables.branches import CommitRef, TableAt, at_branch, at_ref, label_of
from lakeproof.iceberg.tables.refs import find_version, snapshot_as_of, snapshot_of_version
from lakeproof.iceberg.tables.tables import find_table, load_table
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.reading.scan import Scan, Scans
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused
from lakeproof.spark.writing.spark_write import WrittenFiles, write_rows


@dataclass(frozen=True)
class CommitWatch:
    """Who watches the commands of an engine, and how they are judged.

    `on_phase` hears the phases of a write, `on_rerun` why a command runs again. `policy` (else the table's own) judges,
    `whole_files`: a DELETE may drop files without a look inside. `summary` is written into each snapshot.
    """

    on_phase: Hook = no_hook
    on_rerun: Callable[[Conflict], None] = lambda conflict: None
    policy: Policy | None = None
    whole_files: bool = True
    summary: Mapping[str, str] = field(default_factory=dict)

    def policy_of(self, table: Table) -> Policy:
        """The policy that judges a change of this table."""
        return self.policy or named_policy(table.properties.get(POLICY_PROPERTY, "lakeproof"))


@dataclass(frozen=True)
class AppendRows:
    """Rows are added."""


@dataclass(frozen=True)
class Overwrite:
    """Rows that match the filter are replaced; it must select whole files. New rows lie inside, or may be any."""

    filter: Expression = ALWAYS
    may_add_others: bool = False


@dataclass(frozen=True)
class OverwritePartitions:
    """The partitions that are written are replaced."""


def version_label(table: Table) -> str:
    """The table at this version of its metadata: no other has the same label."""
    return f"lakeproof {'.'.join(table.name())} {label_of(table)} {table.metadata_location}"


WriteMode = AppendRows | Overwrite | OverwritePartitions


class Engine:
    """What statements, the session's catalog and the Python interface share."""

    def __init__(self, gateway: Gateway, catalog: Catalog, watch: CommitWatch | None = None) -> None:
        self.gateway, self.catalog, self.watch = gateway, catalog, watch or CommitWatch()
        self.scans = Scans(gateway)

    def watched(self, **changed: Any) -> Engine:
        """The same tables, commands on which are watched or judged in another way (`CommitWatch`)."""
        found = copy(self)
        found.watch = replace(self.watch, **changed)
        return found

    def find(self, name: str) -> Table | None:
        """The managed table of that name at its newest metadata, or `None`; `t.branch_b` is the table at a branch."""
        return find_table(self.catalog, name) or find_version(self.catalog, name)

    def load(self, name: str) -> Table:
        """The managed table, or an `InvalidInput` that names the nearest."""
        return find_version(self.catalog, name) or load_table(self.catalog, name)

    def session_table(self, table: Table) -> Table:
        """The table as the session sees and writes it: `spark.wap.branch` and `spark.wap.id` stage what is written."""
        if isinstance(table, TableAt) or table.properties.get("write.wap.enabled", "false").lower() != "true":
            return table
        branch, wap_id = (self.gateway.spark.conf.get(f"spark.wap.{name}", None) for name in ("branch", "id"))
        if branch and wap_id:
            place = f"table {'.'.join(table.name())}"
            raise InvalidInput("spark.wap.branch and spark.wap.id exclude each other", place=place, hint="unset one")
        if not branch and not wap_id:
            return table
        return at_ref(table, CommitRef(branch, may_be_new=True) if branch else CommitRef(staged_as=str(wap_id)))

    def scan(self, table: Table, *, version: str | None = None, timestamp_ms: int | None = None) -> Scan:
        """The table's rows: at a version, at an instant, else at the head."""
        if isinstance(table, TableAt) and table.ref is None:
            return self.scans.of(table.whole, snapshot_id=table.metadata.current_snapshot_id, time_travel=True)
        if version is not None:
            branch = table.metadata.refs.get(version)
            travels = branch is None or branch.snapshot_ref_type.value != "branch"
            found = snapshot_of_version(table, version).snapshot_id
            return self.scans.of(table, snapshot_id=found, time_travel=travels)
        if timestamp_ms is not None:
            return self.scans.of(table, snapshot_id=snapshot_as_of(table, timestamp_ms).snapshot_id, time_travel=True)
        head = table.current_snapshot()
        return self.scans.of(table, snapshot_id=None if head is None else head.snapshot_id)

    def shape(self, table: Table) -> Scan:
        """A scan that stands for any snapshot that is read with the current schema: what a condition says on it."""
        return self.scans.of(table, snapshot_id=None)

    def write(
        self, table: Table, rows: DataFrame, mode: WriteMode, *, branch: str = "main", batch: StreamBatch | None = None
    ) -> Committed:
        """The rows as one snapshot on top of the branch, or no snapshot and no file.

        `batch`: of a stream; none is made where the branch has it, or where it appends nothing.
        """
        on_phase = self.watch.on_phase
        table = at_branch(table, branch)
        require_kept(table)
        on_phase(SCANNED)
        written = write_rows(self.gateway, table, rows)
        options = CommitOptions(on_phase=on_phase, summary=self.watch.summary, batch=batch)
        with removed_if_refused(lambda: remove_folder(self.gateway, written.folder)):
            on_phase(FILES_WRITTEN)
            done = _committed(table, mode, written, options)
        if done.snapshot_id is None:  # somebody else has committed the batch, or there is nothing to commit
            remove_folder(self.gateway, written.folder)
        return done


def _committed(table: Table, mode: WriteMode, written: WrittenFiles, options: CommitOptions) -> Committed:
    if isinstance(mode, Overwrite):
        others = mode.may_add_others
        return overwrite_where(table, mode.filter, written.files, options, may_add_others=others)
    if isinstance(mode, OverwritePartitions):
        return overwrite_partitions(table, written.files, options)
    if options.batch is not None and not written.files:
        return Committed(table, None, 0)
    return append(table, written.files, options)
