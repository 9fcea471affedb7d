"""REPLACE TABLE: the same table with other columns, partitioning and rows; its old snapshots stay readable by id.

The table keeps its identity and its sequence numbers. `main` begins anew: the next snapshot has no parent. Columns and
partition fields that were there under the same name and type keep their ids. What the table is to be is computed again
from the newest metadata in every try, and one swap makes it so, together with the first snapshot of its new life.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, Unpack

from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.types import NestedField, PrimitiveType

from lakeproof.commit import Commit, CommitWith, Policy, RunAgain, TableChange, checks_of
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import METADATA_WRITTEN, Committed, Hook, TableCalls
from lakeproof.iceberg.committing.physical import NewFiles, Wanted, physical_change
from lakeproof.iceberg.committing.pointer import stage
from lakeproof.iceberg.committing.produce import Producer
from lakeproof.iceberg.committing.retrying import change_metadata, commit_updates
from lakeproof.iceberg.committing.summary import record_of
from lakeproof.iceberg.committing.table_access import TableAccess, Try
from lakeproof.iceberg.committing.table_commits import go_through
from lakeproof.iceberg.committing.values import shape_of
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.format_v3.metadata import require_kept
from lakeproof.iceberg.tables.branches import MAIN
from lakeproof.iceberg.tables.catalogs import warehouse_location
from lakeproof.iceberg.tables.column_dependencies import DEPENDENCIES_PROPERTY, check_dependencies
from lakeproof.iceberg.tables.properties import check_properties
from lakeproof.iceberg.tables.tables import TableDetails, partition_spec


class Replaced(NamedTuple):
    """The table as it is to be, without a head, and what the catalog is told for it."""

    table: Table
    updates: tuple[TableUpdate, ...]


class Replacement(NamedTuple):
    """What a table is to be from now on; columns may have any ids."""

    schema: Schema
    details: TableDetails

    def of(self, table: Table) -> Replaced:
        """What becomes of this table."""
        schema = _schema(table, self.schema)
        updates = [*_without_head(table), *_schema_updates(table, schema)]
        updates += [*_spec_updates(table, _spec(table, schema, self.details)), *_order_updates(table)]
        properties = dict(self.details.get("properties") or {})
        if text := self.details.get("column_dependencies", "").strip():
            check_dependencies(text, schema, place=_place(table))
            properties[DEPENDENCIES_PROPERTY] = text
        check_properties(properties, _place(table))
        if properties:
            updates.append(SetPropertiesUpdate(updates=properties))
        if location := self.details.get("location"):
            updates.append(SetLocationUpdate(location=warehouse_location(location)))
        metadata = update_table_metadata(table.metadata, tuple(updates))
        metadata = metadata.model_copy(update={"snapshot_log": []})
        made = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
        return Replaced(made, tuple(updates))


def replacement(schema: Schema, **details: Unpack[TableDetails]) -> Replacement:
    """What a table is to be, as CREATE TABLE says it."""
    return Replacement(schema, details)


def replace_without_rows(table: Table, wanted: Replacement) -> Table:
    """The table is what is wanted, and empty."""

    def change(newest: Table) -> Table:
        head = newest.metadata.refs.get(MAIN_BRANCH)
        stands = {"ref": MAIN_BRANCH, "snapshot-id": None if head is None else head.snapshot_id}
        return commit_updates(newest, [AssertRefSnapshotId.model_validate(stands)], wanted.of(newest).updates)

    return change_metadata(table, change)


class Replacing(NamedTuple):
    """A commit that replaces the table: what it read of the table, as a change that adds rows, and by which policy."""

    wanted: Replacement
    staged: Replaced
    change: TableChange
    policy: Policy
    summary: dict[str, str]


def replace_with_rows(
    table: Table, made: Replacing, files: Sequence[DataFile], on_phase: Hook, *, reruns: int, reruns_left: bool
) -> Committed | RunAgain:
    """The table is what is wanted and holds these files, through the one protocol; they were written for `staged`.

    Of what others commit meanwhile on main only what the rows were computed from matters: the rest is replaced.
    """
    said = {**record_of(made.change, made.policy, reruns), **made.summary}
    wanted = Wanted(made.change, NewFiles(tuple(files)), made.policy, said)
    change = made.change
    checks = checks_of(made.policy, change.command, change.mode, change.isolation, table.format_version)
    access = _ReplacingAccess(table, wanted, made)
    return go_through(TableCalls(access, made.policy, checks, on_phase, reruns_left=reruns_left), table.properties)


class _ReplacingAccess(TableAccess):
    """A table whose next snapshot begins it anew."""

    def __init__(self, table: Table, wanted: Wanted, made: Replacing) -> None:
        super().__init__(made.staged.table, wanted)  # the files are of its columns and partitions
        self.table, self.made = table, made

    def write(self, answer: Commit | CommitWith, written: Hook) -> None:
        """Write a try on no head, for the table as it is to be."""
        require_kept(self.table)
        replaced = self.made.wanted.of(self.table)
        _refuse_others(replaced.table, self.made.staged.table)
        mine = Try(Producer(replaced.table, self.cache), [], [])
        self.tries.append(mine)
        with translate_errors(f"table {self.name}"):
            change = physical_change(
                self.base, self.wanted, answer, shape_of(replaced.table), mine.producer.snapshot_id, mine.others
            )
            snapshot = mine.producer.produce(replaced.table, None, change)
            written(METADATA_WRITTEN)
            staged = stage(replaced.table, snapshot, MAIN, mine.others)
            mine.staged.append(staged._replace(before=replaced.updates))


def _refuse_others(now: Table, then: Table) -> None:
    """The files that were written name columns and partition fields by their ids: these must still mean the same."""
    if now.schema() != then.schema() or now.spec() != then.spec():
        hint = "run the statement again"
        raise InvalidInput("the table's columns or partitioning were changed meanwhile", place=_place(now), hint=hint)


def _without_head(table: Table) -> list[TableUpdate]:
    if MAIN_BRANCH not in table.metadata.refs:
        return []
    return [RemoveSnapshotRefUpdate.model_validate({"ref-name": MAIN_BRANCH})]


def _schema(table: Table, wanted: Schema) -> Schema:
    """The columns with their final ids."""
    numbers = count(table.metadata.last_column_id + 1)
    fresh = assign_fresh_schema_ids(wanted, lambda: next(numbers))
    old = {field.name: field for field in table.schema().fields}
    fields = [_kept(field, old.get(field.name)) for field in fresh.fields]
    made = Schema(*fields)
    ids = {each.schema_id: each for each in table.metadata.schemas}
    same = next((number for number, each in ids.items() if each.fields == made.fields), None)
    return Schema(*fields, schema_id=max(ids) + 1 if same is None else same)


def _kept(field: NestedField, old: NestedField | None) -> NestedField:
    """A column that was there with the same type keeps its id: files of old snapshots have it too."""
    same = old is not None and isinstance(field.field_type, PrimitiveType) and old.field_type == field.field_type
    return field.model_copy(update={"field_id": old.field_id}) if same and old is not None else field


def _schema_updates(table: Table, schema: Schema) -> list[TableUpdate]:
    if schema.schema_id in {each.schema_id for each in table.metadata.schemas}:
        return [SetCurrentSchemaUpdate.model_validate({"schema-id": schema.schema_id})]
    current = SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
    return [AddSchemaUpdate.model_validate({"schema": schema}), current]


def _spec(table: Table, schema: Schema, details: TableDetails) -> PartitionSpec:
    """The partitioning with its final ids; a field that was there keeps its own."""
    wanted = partition_spec(schema, details.get("partition_by", ()), _place(table))
    known = {(f.source_id, str(f.transform), f.name): f for s in table.specs().values() for f in s.fields}
    numbers = count((table.metadata.last_partition_id or PARTITION_FIELD_ID_START - 1) + 1)
    fields = []
    for field in wanted.fields:
        old = known.get((field.source_id, str(field.transform), field.name))
        number = next(numbers) if old is None else old.field_id
        fields.append(PartitionField(field.source_id, number, field.transform, field.name))
    same = next((number for number, each in table.specs().items() if tuple(each.fields) == tuple(fields)), None)
    return PartitionSpec(*fields, spec_id=max(table.specs()) + 1 if same is None else same)


def _spec_updates(table: Table, spec: PartitionSpec) -> list[TableUpdate]:
    if spec.spec_id in table.specs():
        return [SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id})]
    return [AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate.model_validate({"spec-id": -1})]


def _order_updates(table: Table) -> list[TableUpdate]:
    """Nothing sorts the rows of the new table until it is said again."""
    if not table.sort_order().fields:
        return []
    known = table.metadata.sort_order_by_id(UNSORTED_SORT_ORDER.order_id) is not None
    added = AddSortOrderUpdate.model_validate({"sort-order": UNSORTED_SORT_ORDER})
    chosen = SetDefaultSortOrderUpdate.model_validate({"sort-order-id": UNSORTED_SORT_ORDER.order_id})
    return [chosen] if known else [added, chosen]


def _place(table: Table) -> str:
    return f"table {'.'.join(table.name())}"
