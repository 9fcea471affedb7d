"""CREATE, ALTER and DROP of managed tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.committing.commit import FILES_WRITTEN, SCANNED
from lakeproof.iceberg.pyiceberg_names import IcebergType, PartitionField, PrimitiveType, Table
from lakeproof.iceberg.tables import evolution
from lakeproof.iceberg.tables.branches import TableAt
from lakeproof.iceberg.tables.creation import StagedTable, abandon, create_with_defaults, publish, stage_table
from lakeproof.iceberg.tables.refs import create_branch, create_tag, drop_ref, replace_ref
from lakeproof.iceberg.tables.tables import (
    CREATED_PROPERTY,
    PartitionBy,
    TableDetails,
    create_namespace,
    create_table,
    drop_table,
    find_column,
    joined_name,
    name_parts,
    rename_table,
)
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.failures import translate_spark_errors
from lakeproof.spark.jvm.spark_types import to_iceberg_schema, to_iceberg_type
from lakeproof.spark.reading.file_groups import NAME_MAPPING
from lakeproof.spark.statements.defaults import default_value, require_defaults, require_defaults_of
from lakeproof.spark.statements.names import managed, qualified, refuse_managed_path, spark_has
from lakeproof.spark.statements.table_options import (
    DEPENDENCIES,
    default_provider,
    is_managed,
    lowered,
    table_properties,
)
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_refused
from lakeproof.spark.writing.settings import refuse_settings
from lakeproof.spark.writing.spark_write import write_rows
from lakeproof.sql import statements as s

FORMATS = ("parquet", "orc")


def asks_for_managed(engine: Engine, made: s.CreateTable) -> bool:
    """Whether CREATE TABLE asks for a managed table: `using iceberg`, or the option `addTableManagement`."""
    plain = not made.provider and not {"row", "stored"} & set(made.clauses)
    provider = default_provider(engine) if plain else made.provider
    return is_managed(provider, dict(made.options)) or is_managed("", dict(made.properties))


def create(engine: Engine, made: s.CreateTable) -> None:
    """The table is there, together with the rows of the query if there is one; after a failure it is not."""
    name = qualified(engine, made.table)
    place = f"table {name}"
    refuse_unmakable(engine, made, place)
    if engine.find(name) is not None:
        if made.if_not_exists:
            return
        raise InvalidInput(f"there is already a table `{name}`", hint="drop it first, or say IF NOT EXISTS")
    if made.query is None:
        create_namespace(engine.catalog, name.rpartition(".")[0], if_not_exists=True)
        told = details_of(engine, made, schema_of(engine, made.columns, place))
        table = _create(engine, made, name, told)
        if mapping := _name_mapping(table):
            evolution.alter_properties(table, mapping)
        return
    with translate_spark_errors(engine.gateway, made.query):
        _create_as(engine, made, name, engine.gateway.spark.sql(made.query))


def _create(engine: Engine, made: s.CreateTable, name: str, told: dict[str, Any]) -> Table:
    defaults = _defaults(engine, made, told)
    if not defaults:
        return create_table(engine.catalog, name, **told, if_not_exists=made.if_not_exists)
    try:
        return create_with_defaults(engine.catalog, name, defaults=defaults, **told)
    except InvalidInput:
        found = engine.find(name) if made.if_not_exists else None
        if found is None:
            raise
        return found


def _defaults(engine: Engine, made: s.CreateTable, told: dict[str, Any]) -> dict[str, Any]:
    """The values of new rows that do not say otherwise, by column."""
    given = [column for column in made.columns if column.default is not None]
    if given:
        require_defaults(int(told["properties"].get("format-version", 2)), f"table {made.table}")
    kinds = {field.name: field.field_type for field in told["schema"].fields}
    found = {}
    for column in given:
        name = name_parts(column.name)[-1]
        found[name] = default_value(engine, column.default or "", kinds[name], name)
    return {name: value for name, value in found.items() if value is not None}


def create_like(engine: Engine, made: s.CreateLike, source: Table) -> None:
    """A new table with the columns, the partitioning, the order and the properties of another."""
    name = qualified(engine, made.table)
    if made.provider.lower() not in ("", "iceberg"):
        raise InvalidInput(f"a table like a managed one cannot be `{made.provider}`", place=f"table {name}")
    if engine.find(name) is not None or spark_has(engine, made.table):
        if made.if_not_exists:
            return
        raise InvalidInput(f"there is already a table `{name}`", hint="drop it first, or say IF NOT EXISTS")
    create_namespace(engine.catalog, name.rpartition(".")[0], if_not_exists=True)
    kept = {key: value for key, value in source.properties.items() if key != CREATED_PROPERTY}
    told: TableDetails = {
        "properties": {**kept, "format-version": str(source.format_version), **dict(made.properties)},
        "partition_by": [_partition_of(source, field) for field in source.spec().fields],
        "location": _location(made.location),
    }
    schema = source.schema()
    defaults = {field.name: field.write_default for field in schema.fields if field.write_default is not None}
    if defaults:
        table = create_with_defaults(engine.catalog, name, schema, defaults, **told)
    else:
        table = create_table(engine.catalog, name, schema, **told, if_not_exists=made.if_not_exists)
    order = [evolution.sorted_by(source, field) for field in source.sort_order().fields]
    if order:
        evolution.alter_write_order(table, order, kept.get(evolution.DISTRIBUTION))


def _partition_of(table: Table, field: PartitionField) -> PartitionBy:
    column = str(table.schema().find_column_name(field.source_id))
    return PartitionBy(column, str(field.transform), None if field.name == column else field.name)


def create_from_rows(engine: Engine, made: s.CreateTable, name: str, rows: DataFrame) -> None:
    """The table `name` with these rows, as a writer of DataFrames describes it."""
    refuse_unmakable(engine, made._replace(query=made.table), f"table {name}")
    if engine.find(name) is not None:
        raise InvalidInput(f"there is already a table `{name}`", hint="drop it first, or append to it")
    with translate_spark_errors(engine.gateway):
        _create_as(engine, made, name, rows)


def _create_as(engine: Engine, made: s.CreateTable, name: str, rows: DataFrame) -> None:
    """The rows are written for a table that nobody sees, and one request makes it with its first snapshot."""
    refuse_settings(engine.gateway)
    create_namespace(engine.catalog, name.rpartition(".")[0], if_not_exists=True)
    staged = stage_table(engine.catalog, name, **details_of(engine, made, rows.schema))
    try:
        _fill(engine, made, name, staged, rows)
    except BaseException:
        abandon(staged)
        raise


def _fill(engine: Engine, made: s.CreateTable, name: str, staged: StagedTable, rows: DataFrame) -> None:
    on_phase = engine.watch.on_phase
    on_phase(SCANNED)
    written = write_rows(engine.gateway, staged.table, rows)
    with removed_if_refused(lambda: remove_folder(engine.gateway, written.folder)):
        on_phase(FILES_WRITTEN)
        mapping = _name_mapping(staged.table)
        try:
            publish(staged, written.files, properties=mapping, summary=engine.watch.summary, on_phase=on_phase)
        except InvalidInput:
            if not (made.if_not_exists and engine.find(name) is not None):
                raise
            remove_folder(engine.gateway, written.folder)


def details_of(engine: Engine, made: s.CreateTable, schema: spark.StructType) -> dict[str, Any]:
    """What the statement says of a table, as `create_table` wants it told."""
    options = lowered(dict(made.options))
    said = {**table_properties(dict(made.options)), **table_properties(dict(made.properties))}
    properties = {"owner": engine.gateway.spark.sparkContext.sparkUser(), **said}
    if made.provider.lower() in FORMATS and made.provider.lower() != "parquet":
        properties.setdefault("write.format.default", made.provider.lower())
    if made.comment:
        properties["comment"] = made.comment
    return {
        "schema": to_iceberg_schema(schema),
        "partition_by": [_partition_by(field) for field in made.partitions],
        "properties": properties,
        "location": _location(made.location or options.get("path")),
        "column_dependencies": options.get(DEPENDENCIES, lowered(dict(made.properties)).get(DEPENDENCIES, "")),
    }


def _name_mapping(table: Table) -> dict[str, str]:
    """Spark's ORC writer leaves field ids out: other engines find the columns by this property."""
    return {NAME_MAPPING: table.schema().name_mapping.model_dump_json()} if read_by_name(table) else {}


def read_by_name(table: Table) -> bool:
    """Whether the table's own files carry no field ids."""
    return table.properties.get("write.format.default", "parquet").lower() != "parquet"


def _location(path: str | None) -> str | None:
    return None if path is None else path if "://" in path else str(Path(path.removeprefix("file:")).absolute())


def refuse_unmakable(engine: Engine, made: s.CreateTable, place: str) -> None:
    """Refuse what no managed table can be."""
    provider = made.provider.lower()
    if made.clauses:
        reason = "Iceberg has no such clause; partition by bucket(n, column) instead of buckets"
        raise InvalidInput(f"a managed table cannot be {made.clauses[0]}", place=place, hint=reason)
    if provider == "avro":
        reason = "Spark writes Avro without field ids, and PyIceberg reads no Avro rows: nobody else could read it"
        raise InvalidInput("a managed table cannot be written as `avro`", place=place, hint=f"{reason}; use parquet")
    if provider not in ("", "iceberg", *FORMATS):
        raise InvalidInput(f"a managed table cannot be written as `{provider}`", place=place, hint="use parquet or orc")
    if not made.columns and made.query is None:
        raise InvalidInput("the table needs columns or a query", place=place)
    if made.columns and made.query is not None:
        raise InvalidInput("CREATE TABLE … AS takes its columns from the query", place=place, hint="leave them out")
    if spark_has(engine, made.table):
        raise InvalidInput("Spark itself has a table of that name", place=place, hint="drop it, or choose another name")


def schema_of(engine: Engine, columns: tuple[s.ColumnDefinition, ...], place: str) -> spark.StructType:
    """The columns that a statement lists."""
    fields = []
    for column in columns:
        kind = _type(engine, column, place)
        metadata = {"comment": column.comment} if column.comment else {}
        fields.append(spark.StructField(name_parts(column.name)[-1], kind, column.nullable, metadata))
    names = [field.name.lower() for field in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InvalidInput(f"the column `{twice}` is there twice", place=place)
    return spark.StructType(fields)


def _type(engine: Engine, column: s.ColumnDefinition, place: str) -> spark.DataType:
    with translate_spark_errors(engine.gateway):
        try:
            return spark.StructType.fromDDL(f"x {column.type}").fields[0].dataType
        except Exception as error:
            raise InvalidInput(
                f"`{column.type}` is not a type", place=f"{place}, column {column.name}", hint=str(error).split("\n")[0]
            ) from None


def drop(engine: Engine, dropped: s.Drop) -> None:
    """The table leaves the catalog; PURGE removes its files too."""
    drop_table(engine.catalog, qualified(engine, dropped.table), if_exists=dropped.if_exists, purge=dropped.purge)


def alter(engine: Engine, altered: s.Alter, table: Table) -> None:
    """All schema changes of one statement are one new schema."""
    if isinstance(table, TableAt):
        hint = "alter the table itself: its branches have its columns"
        raise InvalidInput("a branch or tag cannot be altered", place=f"table {altered.table}", hint=hint)
    if not altered.changes:
        raise InvalidInput("a managed table has no such ALTER TABLE", place=f"table {altered.table}", hint=_ALTER_HINT)
    schema = [change for each in altered.changes for change in _schema_changes(engine, table, each, altered.table)]
    kept = (evolution.AddColumn, evolution.MoveColumn, evolution.CommentColumn, evolution.WidenColumn)
    if read_by_name(table) and not all(isinstance(change, kept) for change in schema):
        raise InvalidInput(
            "columns of ORC files are found by name, so they can be neither renamed nor dropped",
            place=f"table {altered.table}",
            hint="copy the rows into a Parquet table",
        )
    if schema:
        table = evolution.alter_schema(table, schema)
    fields = [change for each in altered.changes for change in _partition_changes(each)]
    if fields:
        table = evolution.alter_partitions(table, fields)
    for change in altered.changes:
        _other_change(engine, table, change, altered.table)


_ALTER_HINT = (
    "known are ADD, RENAME, DROP and ALTER COLUMN, SET and UNSET TBLPROPERTIES, RENAME TO, "
    "ADD, DROP and REPLACE PARTITION FIELD, REPLACE COLUMNS, WRITE ORDERED BY, SET and DROP IDENTIFIER FIELDS, "
    "CREATE, REPLACE and DROP BRANCH or TAG"
)


def _schema_changes(engine: Engine, table: Table, change: s.Change, place: str) -> Iterator[evolution.SchemaChange]:
    match change:
        case s.ReplaceColumns(columns):
            yield from (evolution.DropColumn(joined_name([field.name])) for field in table.schema().fields)
            for column in columns:
                yield from _schema_changes(engine, table, s.AddColumnClause(column), place)
        case s.AddColumnClause(column, first, after):
            kind = _iceberg_type(engine, column, place)
            default = _default(engine, table, column, kind)
            if not column.nullable and default is None:
                hint = "old rows have no value for it"
                raise InvalidInput("a new column cannot be NOT NULL", place=f"column {column.name}", hint=hint)
            required = not column.nullable
            yield evolution.AddColumn(column.name, kind, column.comment, first, after, default, required)
        case s.RenameColumnClause(name, new_name):
            yield evolution.RenameColumn(name, new_name)
        case s.DropColumnClause(name, if_exists):
            yield evolution.DropColumn(name, if_exists)
        case s.IdentifierFields(names, dropped):
            yield evolution.SetIdentifier(names, dropped)
        case s.AlterColumn():
            yield from _column_changes(engine, table, change, place)


def _default(engine: Engine, table: Table, column: s.ColumnDefinition, kind: IcebergType) -> Any:
    """The value of a new default; `None`: there is none."""
    if column.default is None:
        return None
    require_defaults_of(table)
    if len(name_parts(column.name)) > 1:
        hint = "add the column without a default"
        raise InvalidInput("a field inside a struct can have no default", place=f"column {column.name}", hint=hint)
    return default_value(engine, column.default, kind, column.name)


def _column_changes(
    engine: Engine, table: Table, change: s.AlterColumn, place: str
) -> Iterator[evolution.SchemaChange]:
    if change.type is not None:
        kind = _iceberg_type(engine, s.ColumnDefinition(change.name, change.type), place)
        if not isinstance(kind, PrimitiveType):
            raise InvalidInput("only single values can be widened", place=f"column {change.name}")
        yield evolution.WidenColumn(change.name, kind)
    if change.comment is not None:
        yield evolution.CommentColumn(change.name, change.comment)
    if change.first or change.after:
        yield evolution.MoveColumn(change.name, change.first, change.after)
    if change.nullable is False:
        raise InvalidInput(
            "a column cannot become NOT NULL", place=f"column {change.name}", hint="old rows may be null"
        )
    if change.nullable:
        yield evolution.CommentColumn(change.name, make_optional=True)
    if change.default is not None or change.drop_default:
        require_defaults_of(table)
        kind = find_column(table.schema(), ".".join(name_parts(change.name)), f"table {place}").field_type
        column = s.ColumnDefinition(change.name, str(kind), default=change.default)
        yield evolution.SetDefault(change.name, _default(engine, table, column, kind))


def _iceberg_type(engine: Engine, column: s.ColumnDefinition, place: str) -> IcebergType:
    return to_iceberg_type(_type(engine, column, place), count(1), column.name)


def _partition_changes(change: s.Change) -> Iterator[evolution.PartitionChange]:
    if isinstance(change, s.AddPartitionField):
        yield _partition_by(change.field)
    elif isinstance(change, s.DropPartitionField):
        yield evolution.DropPartition(_partition_by(change.field))


def _partition_by(field: s.PartitionTransform) -> PartitionBy:
    return PartitionBy(".".join(name_parts(field.column)), field.transform, field.name)


def _other_change(engine: Engine, table: Table, change: s.Change, name: str) -> None:
    match change:
        case s.SetProperties(properties):
            evolution.alter_properties(table, dict(properties))
        case s.UnsetProperties(names):
            evolution.alter_properties(table, remove=names)
        case s.RenameTable(new_name):
            _rename(engine, name, new_name)
        case s.SetLocation(location):
            refuse_managed_path(engine, location)
            evolution.alter_location(table, location)
        case s.WriteOrder(order, distribution):
            sorted_by = [evolution.SortedBy(_partition_by(e.field), e.descending, e.nulls_first) for e in order]
            evolution.alter_write_order(table, sorted_by, distribution)
        case s.CreateRef():
            _make_ref(table, change)
        case s.DropRef(kind, ref, if_exists):
            drop_ref(table, ref, kind=kind, if_exists=if_exists)


def _make_ref(table: Table, made: s.CreateRef) -> None:
    kept = dict(made.retention)
    if made.replace:
        replace_ref(table, made.name, made.kind, made.snapshot_id, must_exist=made.must_exist, **kept)
    elif not (made.if_not_exists and made.name in table.metadata.refs):
        (create_branch if made.kind == "branch" else create_tag)(table, made.name, made.snapshot_id, **kept)


def _rename(engine: Engine, name: str, new_name: str) -> None:
    if managed(engine, new_name) is not None or spark_has(engine, new_name):
        raise InvalidInput(f"there is already a table `{new_name}`", hint="choose another name")
    rename_table(engine.catalog, qualified(engine, name), qualified(engine, new_name))
