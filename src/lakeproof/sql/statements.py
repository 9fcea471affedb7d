"""What a statement asks for, as values: no Spark, no table, no sqlglot."""

from __future__ import annotations

from typing import NamedTuple

Literal = str | int | float | bool | None


class ColumnDefinition(NamedTuple):
    """A column of CREATE TABLE or ALTER TABLE; the type and the default are SQL text."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None


class PartitionTransform(NamedTuple):
    """A column under a transform, spelled as Iceberg does: `identity`, `bucket[16]`, `truncate[4]`, `day`, …"""

    column: str
    transform: str = "identity"
    name: str | None = None


class CreateTable(NamedTuple):
    """CREATE TABLE, with a query for CREATE TABLE … AS SELECT; `clauses` are those that only Spark knows."""

    table: str
    text: str
    columns: tuple[ColumnDefinition, ...] = ()
    provider: str = ""
    options: tuple[tuple[str, str], ...] = ()
    partitions: tuple[PartitionTransform, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False
    query: str | None = None
    clauses: tuple[str, ...] = ()


class CreateLike(NamedTuple):
    """CREATE TABLE … LIKE another: its columns, partitioning and order, none of its rows."""

    table: str
    source: str
    text: str
    provider: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None
    if_not_exists: bool = False


class Insert(NamedTuple):
    """INSERT INTO or INSERT OVERWRITE."""

    table: str
    text: str


class InsertDirectory(NamedTuple):
    """INSERT OVERWRITE DIRECTORY: files at a path, no table."""

    path: str
    text: str


class QueryStatement(NamedTuple):
    """Anything that gives rows."""

    text: str


class AsOf(NamedTuple):
    """`as of '<instant>' select …`: every managed table as it was then; the instant is text or epoch millis."""

    instant: str | int
    query: str
    text: str


class RowLevel(NamedTuple):
    """UPDATE, DELETE or MERGE: what it means is for Spark to say, or for `row_commands` where there is no Spark."""

    text: str


class AddColumnClause(NamedTuple):
    """A new column, last unless placed."""

    column: ColumnDefinition
    first: bool = False
    after: str | None = None


class RenameColumnClause(NamedTuple):
    """A column has another name."""

    name: str
    new_name: str


class DropColumnClause(NamedTuple):
    """A column is gone."""

    name: str
    if_exists: bool = False


class ReplaceColumns(NamedTuple):
    """All columns are gone, and these are there instead; what the old ones held is not theirs."""

    columns: tuple[ColumnDefinition, ...]


class AlterColumn(NamedTuple):
    """A column has another type, comment, place or default, may be null, or has no default any more."""

    name: str
    type: str | None = None
    comment: str | None = None
    first: bool = False
    after: str | None = None
    nullable: bool | None = None
    default: str | None = None
    drop_default: bool = False


class SetProperties(NamedTuple):
    """Table properties are set."""

    properties: tuple[tuple[str, str], ...]


class UnsetProperties(NamedTuple):
    """Table properties are removed."""

    names: tuple[str, ...]


class SortBy(NamedTuple):
    """One column, or a transform of one, that rows are sorted by."""

    field: PartitionTransform
    descending: bool = False
    nulls_first: bool = True


class WriteOrder(NamedTuple):
    """How rows are sorted and distributed when they are written; `distribution` `None`: as the order wants it."""

    order: tuple[SortBy, ...] = ()
    distribution: str | None = None


class IdentifierFields(NamedTuple):
    """These columns tell a row from all others, or no longer do."""

    names: tuple[str, ...]
    dropped: bool = False


class SetLocation(NamedTuple):
    """New files are written there."""

    location: str


class RenameTable(NamedTuple):
    """The table has another name."""

    new_name: str


class AddPartitionField(NamedTuple):
    """New files are partitioned by one more field."""

    field: PartitionTransform


class DropPartitionField(NamedTuple):
    """New files are no longer partitioned by this field."""

    field: PartitionTransform


class CreateRef(NamedTuple):
    """A branch or a tag at a snapshot (`None`: the current one); one that is there may or must be replaced."""

    kind: str
    name: str
    snapshot_id: int | None = None
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False
    retention: tuple[tuple[str, int], ...] = ()


class DropRef(NamedTuple):
    """A branch or a tag is gone."""

    kind: str
    name: str
    if_exists: bool = False


Change = (
    AddColumnClause
    | RenameColumnClause
    | DropColumnClause
    | AlterColumn
    | SetProperties
    | UnsetProperties
    | RenameTable
    | AddPartitionField
    | DropPartitionField
    | CreateRef
    | DropRef
    | ReplaceColumns
    | WriteOrder
    | IdentifierFields
    | SetLocation
)


class Alter(NamedTuple):
    """ALTER TABLE; `changes` is empty for a form that only Spark's own tables know."""

    table: str
    text: str
    changes: tuple[Change, ...] = ()


class Drop(NamedTuple):
    """DROP TABLE."""

    table: str
    text: str
    if_exists: bool = False
    purge: bool = False


class Truncate(NamedTuple):
    """TRUNCATE TABLE."""

    table: str
    text: str


class Describe(NamedTuple):
    """DESCRIBE [EXTENDED] of a table, or of one of its columns."""

    table: str
    text: str
    extended: bool = False
    column: str = ""


class Show(NamedTuple):
    """SHOW PARTITIONS, CREATE TABLE, COLUMNS or TBLPROPERTIES (of one `name`); `what` is the word after SHOW."""

    what: str
    text: str
    table: str = ""
    name: str = ""


class ShowExtended(NamedTuple):
    """SHOW TABLE EXTENDED [IN namespace] LIKE pattern."""

    pattern: str
    text: str
    namespace: str = ""


class Refresh(NamedTuple):
    """REFRESH TABLE."""

    table: str
    text: str


class Computed(NamedTuple):
    """An expression that is no literal: its value is for Spark to compute."""

    text: str


class Argument(NamedTuple):
    """An argument of CALL, by position or by name."""

    value: Literal | tuple[Literal, ...] | Computed
    name: str | None = None


class ProcedureCall(NamedTuple):
    """CALL system.procedure(…)."""

    procedure: str
    text: str
    arguments: tuple[Argument, ...] = ()

    @property
    def is_of_another_catalog(self) -> bool:
        """Whether its name says whose it is, and it is neither ours nor the session catalog's."""
        return self.procedure.count(".") > 1


class Explain(NamedTuple):
    """EXPLAIN [mode] of another statement."""

    mode: str
    statement: str
    text: str


class ExecuteImmediate(NamedTuple):
    """EXECUTE IMMEDIATE of an expression whose value is a statement; it may take values, or give some to variables."""

    statement: str
    plain: bool
    text: str


class Other(NamedTuple):
    """A statement that is Spark's own business."""

    text: str


Statement = (
    CreateTable
    | CreateLike
    | Insert
    | InsertDirectory
    | QueryStatement
    | AsOf
    | RowLevel
    | Alter
    | Drop
    | Truncate
    | Describe
    | Show
    | ShowExtended
    | Refresh
    | ProcedureCall
    | Explain
    | ExecuteImmediate
    | Other
)
