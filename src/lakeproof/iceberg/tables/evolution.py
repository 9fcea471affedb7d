"""Schema, partitioning and properties change; the files that are there stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField
from pyiceberg.table.update import (
    RemovePropertiesUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType, PrimitiveType

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.retrying import change_metadata, commit_updates, may_be_outrun
from lakeproof.iceberg.failures import swapping
from lakeproof.iceberg.format_v3.metadata import NEWEST
from lakeproof.iceberg.pyiceberg_private import set_default
from lakeproof.iceberg.tables.catalogs import warehouse_location
from lakeproof.iceberg.tables.column_dependencies import DEPENDENCIES_PROPERTY, check_dependencies, parse_dependencies
from lakeproof.iceberg.tables.properties import check_properties
from lakeproof.iceberg.tables.tables import PartitionBy, find_column, name_parts

DISTRIBUTION = "write.distribution-mode"


class AddColumn(NamedTuple):
    """A new column, last in its struct unless placed; `name` is dotted inside structs.

    Rows that are there have its default; so does a new row that does not say otherwise. One without is optional.
    """

    name: str
    type: IcebergType
    doc: str | None = None
    first: bool = False
    after: str | None = None
    default: Any = None
    required: bool = False


class RenameColumn(NamedTuple):
    """The column has another last name; its id stays."""

    name: str
    new_name: str


class DropColumn(NamedTuple):
    """The column is gone from the schema; its data stays in old files, unread."""

    name: str
    if_exists: bool = False


class WidenColumn(NamedTuple):
    """int to long, float to double, or a decimal of more digits."""

    name: str
    type: PrimitiveType


class MoveColumn(NamedTuple):
    """The column is first in its struct, or after another."""

    name: str
    first: bool = False
    after: str | None = None


class CommentColumn(NamedTuple):
    """The column has another comment, or may be null from now on."""

    name: str
    doc: str | None = None
    make_optional: bool = False


class SetDefault(NamedTuple):
    """A new row that does not say otherwise has this value (`None`: null); rows that are there stay as they are."""

    name: str
    value: Any


class SetIdentifier(NamedTuple):
    """These columns together tell a row from all others; or these are no longer among them."""

    names: tuple[str, ...]
    dropped: bool = False


SchemaChange = (
    AddColumn | RenameColumn | DropColumn | WidenColumn | MoveColumn | CommentColumn | SetDefault | SetIdentifier
)


class DropPartition(NamedTuple):
    """The partition field, named as in the spec or by its column and transform, is no longer used for new files."""

    field: PartitionBy


PartitionChange = PartitionBy | DropPartition


class SortedBy(NamedTuple):
    """A column under a transform, and in which direction rows are sorted by it."""

    field: PartitionBy
    descending: bool = False
    nulls_first: bool = True


def alter_schema(table: Table, changes: Iterable[SchemaChange]) -> Table:
    """The table with all changes, as one new schema."""
    listed = list(changes)

    def apply(fresh: Table) -> None:
        wanted = [change for change in listed if not _is_gone(fresh.schema(), change)]
        _guard(fresh, wanted)
        with fresh.update_schema(allow_incompatible_changes=False, case_sensitive=False) as update:
            for change in wanted:
                _apply(update, fresh.schema(), change)

    return _committed(table, apply)


def merge_schema(table: Table, schema: Schema) -> Table:
    """The table with the columns that `schema` has besides, and its types where they are wider."""

    def apply(fresh: Table) -> None:
        with fresh.update_schema(allow_incompatible_changes=False, case_sensitive=False) as update:
            update.union_by_name(_all_optional(schema))

    return _committed(table, apply)


def _all_optional(schema: Schema) -> Schema:
    """A column that rows always fill may still be null in older ones."""
    return Schema(*(field.model_copy(update={"required": False}) for field in schema.fields))


def alter_location(table: Table, location: str) -> Table:
    """New files are written there; those that are there already stay where they are."""
    updates = [SetLocationUpdate(location=warehouse_location(location))]
    return change_metadata(table, lambda newest: commit_updates(newest, [], updates))


def alter_partitions(table: Table, changes: Iterable[PartitionChange]) -> Table:
    """The table with a new partition spec; files of older specs stay as they are."""
    listed = list(changes)

    def apply(fresh: Table) -> None:
        with fresh.update_spec(case_sensitive=False) as update:
            for change in _with_renames(fresh, listed):
                _repartition(fresh, update, change)

    return _committed(table, apply)


def alter_write_order(table: Table, order: Sequence[SortedBy], distribution: str | None) -> Table:
    """The table whose new files are sorted so (no `order`: not at all); no `distribution`: as the order wants."""

    def apply(fresh: Table) -> None:
        with fresh.transaction() as transaction:
            with transaction.update_sort_order(case_sensitive=False) as update:
                for each in order:
                    column = find_column(fresh.schema(), each.field.column, _place(table))
                    name, transform = (
                        fresh.schema().find_column_name(column.field_id),
                        parse_transform(each.field.transform),
                    )
                    assert name is not None
                    nulls = NullOrder.NULLS_FIRST if each.nulls_first else NullOrder.NULLS_LAST
                    (update.desc if each.descending else update.asc)(name, transform, nulls)
            if distribution is not None:
                transaction.set_properties({DISTRIBUTION: distribution})
            elif DISTRIBUTION in fresh.properties:
                transaction.remove_properties(DISTRIBUTION)

    return _committed(table, apply)


def alter_properties(table: Table, set_: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> Table:
    """The table with these properties set and those gone; removing one that is not there is no error."""
    removed = [name for name in remove if name in table.properties]
    version = _asked_version(table, set_ or {})
    check_properties(set_ or {}, _place(table))
    if text := (set_ or {}).get(DEPENDENCIES_PROPERTY):
        check_dependencies(text, table.schema(), place=_place(table))

    if version == NEWEST:
        return change_metadata(table, lambda fresh: _upgraded(fresh, set_ or {}, removed))

    def apply(fresh: Table) -> None:
        with fresh.transaction() as transaction:
            if removed:
                transaction.remove_properties(*removed)
            if set_:
                _set(transaction, dict(set_))

    return _committed(table, apply)


def _asked_version(table: Table, set_: Mapping[str, str]) -> int | None:
    """The format version that is asked for; `None`: none, or the one that the table has."""
    asked, now = set_.get("format-version"), table.format_version
    if asked is None or asked == str(now):
        return None
    if asked not in ("1", "2", "3"):
        raise InvalidInput(f"there is no format version {asked}", place=_place(table), hint="it is 1, 2 or 3")
    if int(asked) < now:
        hint = "write its rows into a new table: create table … as select"
        raise InvalidInput(f"a table of format version {now} cannot go back to {asked}", place=_place(table), hint=hint)
    return int(asked)


def _upgraded(table: Table, set_: Mapping[str, str], removed: Sequence[str]) -> Table:
    """The table in version 3 with these properties, by one request: PyIceberg's transactions refuse it."""
    others = {name: value for name, value in set_.items() if name != "format-version"}
    gone = [name for name in removed if name in table.properties]
    updates: list[TableUpdate] = []
    if table.format_version < NEWEST:
        updates.append(UpgradeFormatVersionUpdate.model_validate({"format-version": NEWEST}))
    updates += [SetPropertiesUpdate(updates=others)] if others else []
    updates += [RemovePropertiesUpdate(removals=gone)] if gone else []
    return commit_updates(table, (), updates) if updates else table


def sorted_by(table: Table, field: SortField) -> SortedBy:
    """A field of the table's sort order, by the name of its column."""
    column = str(table.schema().find_column_name(field.source_id))
    first = field.null_order is NullOrder.NULLS_FIRST
    return SortedBy(PartitionBy(column, str(field.transform)), field.direction is SortDirection.DESC, first)


def _set(transaction: object, properties: dict[str, str]) -> None:
    version = properties.pop("format-version", None)
    if version is not None and int(version) < NEWEST:  # else the table has it
        transaction.upgrade_table_version(int(version))  # type: ignore[attr-defined]
    if properties:
        transaction.set_properties(properties)  # type: ignore[attr-defined]


def _committed(table: Table, apply: Callable[[Table], None]) -> Table:
    """Metadata changes are made again on the newest metadata when somebody was faster."""

    def change(fresh: Table) -> Table:
        with swapping(_place(table)), may_be_outrun(fresh):
            apply(fresh)  # PyIceberg puts what it committed into the table that it was given
        return fresh

    return change_metadata(table, change)


def _guard(table: Table, changes: Iterable[SchemaChange]) -> None:
    """Columns that something else names cannot go."""
    schema, place = table.schema(), _place(table)
    for change in changes:
        if isinstance(change, AddColumn):
            continue
        if isinstance(change, SetIdentifier):
            _guard_identifier(schema, change, place)
            continue
        name = ".".join(name_parts(change.name))
        field = find_column(schema, name, place)
        if isinstance(change, RenameColumn):
            _guard_new_name(schema, name, change.new_name, place)
        if isinstance(change, DropColumn):
            sources = {part.source_id for part in table.spec().fields}
            if field.field_id in sources:
                raise InvalidInput(
                    f"`{change.name}` is a partition column", place=place, hint="drop the partition field first"
                )
        if isinstance(change, DropColumn | RenameColumn):
            _guard_dependencies(table, schema, name, place)


def _is_gone(schema: Schema, change: SchemaChange) -> bool:
    """Whether a column that may be missing is."""
    if not (isinstance(change, DropColumn) and change.if_exists):
        return False
    wanted = ".".join(name_parts(change.name)).lower()
    return wanted not in {name.lower() for name in schema.column_names}


def _guard_new_name(schema: Schema, name: str, new_name: str, place: str) -> None:
    """Names are compared without their case, so that a column cannot be renamed into another spelling either."""
    path = ".".join([*name.split(".")[:-1], name_parts(new_name)[-1]])
    if path.lower() in {known.lower() for known in schema.column_names}:
        hint = "names are compared without their case"
        raise InvalidInput(f"there is already a column `{path}`", place=place, hint=hint)


def _guard_identifier(schema: Schema, change: SetIdentifier, place: str) -> None:
    known = schema.identifier_field_ids
    for name in change.names:
        field = find_column(schema, ".".join(name_parts(name)), place)
        if change.dropped and field.field_id not in known:
            raise InvalidInput(f"`{name}` is no identifier field", place=place)
        if not change.dropped and not field.required:
            hint = "declare it NOT NULL when the table is made"
            raise InvalidInput(f"`{name}` may be null, so it identifies no row", place=place, hint=hint)


def _guard_dependencies(table: Table, schema: Schema, column: str, place: str) -> None:
    for dependency in parse_dependencies(table.properties.get(DEPENDENCIES_PROPERTY, "")):
        if column.lower() in (dependency.source.lower(), dependency.destination.lower()):
            raise InvalidInput(
                f"`{column}` is part of the column dependency `{dependency}`",
                place=place,
                hint=f"change the table property {DEPENDENCIES_PROPERTY} first",
            )


def _apply(update: UpdateSchema, schema: Schema, change: SchemaChange) -> None:
    if isinstance(change, SetIdentifier):
        _identify(update, schema, change)
        return
    path = name_parts(change.name)
    match change:
        case AddColumn(_, kind, doc, first, after, default, required):
            update.add_column(path, kind, doc, required=required, default_value=default)
            _move(update, path, first=first, after=after)
        case RenameColumn(_, new_name):
            update.rename_column(path, name_parts(new_name)[-1])
        case DropColumn():
            update.delete_column(path)
        case WidenColumn(_, kind):
            update.update_column(path, field_type=kind)
        case MoveColumn(_, first, after):
            _move(update, path, first=first, after=after)
        case SetDefault(_, value):
            set_default(update, path, value)
        case CommentColumn(_, doc, make_optional):
            update.update_column(path, doc=doc, required=False if make_optional else None)


def _identify(update: UpdateSchema, schema: Schema, change: SetIdentifier) -> None:
    named = [schema.find_field(".".join(name_parts(name)), case_sensitive=False).field_id for name in change.names]
    kept = [each for each in schema.identifier_field_ids if each not in named] if change.dropped else named
    update.set_identifier_fields(*(str(schema.find_column_name(each)) for each in kept))


def _move(update: UpdateSchema, path: tuple[str, ...], *, first: bool, after: str | None) -> None:
    if first:
        update.move_first(path)
    elif after is not None:
        update.move_after(path, (*path[:-1], name_parts(after)[-1]))


class _RenamedPartition(NamedTuple):
    """A field that was to be dropped and added again is the same field under its new name."""

    name: str
    new_name: str


def _with_renames(table: Table, changes: list[PartitionChange]) -> list[PartitionChange | _RenamedPartition]:
    if len(changes) != 2 or not isinstance(changes[0], DropPartition) or not isinstance(changes[1], PartitionBy):
        return list(changes)
    old, new = _field_name(table, changes[0].field), changes[1]
    field = next(each for each in table.spec().fields if each.name == old)
    source = find_column(table.schema(), new.column, _place(table)).field_id
    if field.source_id != source or str(field.transform) != str(parse_transform(new.transform)):
        return list(changes)
    return [_RenamedPartition(old, new.name)] if new.name not in (None, old) else []


def _repartition(table: Table, update: UpdateSpec, change: PartitionChange | _RenamedPartition) -> None:
    if isinstance(change, DropPartition):
        update.remove_field(_field_name(table, change.field))
        return
    if isinstance(change, _RenamedPartition):
        update.rename_field(change.name, change.new_name)
        return
    column = table.schema().find_column_name(find_column(table.schema(), change.column, _place(table)).field_id)
    assert column is not None
    # Without a name the field has Iceberg's: `id_bucket_16`, where CREATE TABLE would say `id_bucket`.
    transform = parse_transform(change.transform)
    try:
        update.add_field(column, transform, change.name)
    except ValueError as error:
        if "Duplicate partition field" not in str(error):
            raise
        known = _field_name(table, change._replace(name=None))
        said = f"`{column}` is partitioned by {transform} already, as `{known}`"
        raise InvalidInput(
            said, place=_place(table), hint="ALTER TABLE ... REPLACE PARTITION FIELD renames it"
        ) from None


def _field_name(table: Table, wanted: PartitionBy) -> str:
    for field in table.spec().fields:
        source = table.schema().find_column_name(field.source_id) or ""
        same = source.lower() == wanted.column.lower() and str(field.transform) == str(
            parse_transform(wanted.transform)
        )
        if same or field.name.lower() == (wanted.name or wanted.column).lower():
            return field.name
    raise InvalidInput(
        f"there is no partition field {wanted.transform} of `{wanted.column}`",
        place=_place(table),
        hint=f"partition fields: {', '.join(field.name for field in table.spec().fields) or 'none'}",
    )


def _place(table: Table) -> str:
    return f"table {'.'.join(table.name())}"
