"""Text becomes the statement that it asks for, and nothing of Spark's own is lost on the way."""

from __future__ import annotations

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.sql import parse_all, parse_statement, split
from lakeproof.sql import statements as s
from lakeproof.sql.column_aliases import with_aliases_inside
from lakeproof.sql.parser import asks_for_management, target

NO_CONSTRAINTS = "managed tables have no generated columns or constraints"
CREATE = """create table if not exists db.sales (
  id int not null comment 'the key', price decimal(7, 2), tags map<string, array<int>>, ts timestamp)
using parquet
options (path "some/folder", addTableManagement "true", columnDependencies "a=b:truncate[2]")
partitioned by (day_col, days(ts), bucket(4, id), truncate(10, id))
tblproperties ('write.delete.mode'='merge-on-read', commit.retry.num-retries = 7)"""


def test_create_table_with_everything() -> None:
    made = parse_statement(CREATE.replace("commit.retry.num-retries", "`commit.retry`"))
    assert isinstance(made, s.CreateTable)
    assert made.table == "db.sales"
    assert made.if_not_exists
    assert made.columns == (
        s.ColumnDefinition("id", "int", nullable=False, comment="the key"),
        s.ColumnDefinition("price", "decimal(7, 2)"),
        s.ColumnDefinition("tags", "map<string, array<int>>"),
        s.ColumnDefinition("ts", "timestamp"),
    )
    assert made.provider == "parquet"
    assert dict(made.options) == {
        "path": "some/folder",
        "addTableManagement": "true",
        "columnDependencies": "a=b:truncate[2]",
    }
    assert made.partitions == (
        s.PartitionTransform("day_col"),
        s.PartitionTransform("ts", "day"),
        s.PartitionTransform("id", "bucket[4]"),
        s.PartitionTransform("id", "truncate[10]"),
    )
    assert dict(made.properties)["write.delete.mode"] == "merge-on-read"


def test_create_table_as_select_keeps_the_query_verbatim() -> None:
    made = parse_statement("create table t using iceberg partitioned by (p) as\nselect 1 AS p, 'x;y' q -- why\n from r")
    assert isinstance(made, s.CreateTable)
    assert made.query == "select 1 AS p, 'x;y' q -- why\n from r"


def test_partition_columns_may_bring_their_types() -> None:
    made = parse_statement("create table t (a int) using iceberg partitioned by (b string, c int)")
    assert isinstance(made, s.CreateTable)
    assert [column.name for column in made.columns] == ["a", "b", "c"]
    assert made.partitions == (s.PartitionTransform("b"), s.PartitionTransform("c"))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        pytest.param("drop table if exists a.b purge", s.Drop("a.b", "", True, True), id="drop"),
        pytest.param(
            "insert overwrite local directory '/x' using parquet select 1", s.InsertDirectory("/x", ""), id="directory"
        ),
        pytest.param(
            "insert overwrite directory using parquet options (path '/x') select 1",
            s.InsertDirectory("/x", ""),
            id="directory in the options",
        ),
        pytest.param("truncate table t", s.Truncate("t", ""), id="truncate"),
        pytest.param("describe extended t", s.Describe("t", "", True), id="describe extended"),
        pytest.param("desc t", s.Describe("t", ""), id="desc"),
        pytest.param("show partitions t", s.Show("partitions", "", "t"), id="show partitions"),
        pytest.param("describe t c", s.Describe("t", "", column="c"), id="describe a column"),
        pytest.param("refresh table t", s.Refresh("t", ""), id="refresh"),
        pytest.param("create table t like u using iceberg", s.CreateLike("t", "u", "", "iceberg"), id="create like"),
        pytest.param("show table extended in db like 't*'", s.ShowExtended("t*", "", "db"), id="show table extended"),
        pytest.param("show create table t", s.Show("create table", "", "t"), id="show create table"),
        pytest.param("explain formatted select 1", s.Explain("formatted", "select 1", ""), id="explain"),
        pytest.param(
            "as of '2024-01-31 10:00:00' select * from t",
            s.AsOf("2024-01-31 10:00:00", "select * from t", ""),
            id="as of text",
        ),
        pytest.param(
            "as of 1566875511640 with x as (select 1) select * from x",
            s.AsOf(1566875511640, "with x as (select 1) select * from x", ""),
            id="as of millis",
        ),
        pytest.param(
            "insert overwrite table t partition (p='x') select 1",
            s.Insert("t", ""),
            id="insert overwrite",
        ),
        pytest.param(
            "call system.expire_snapshots('t', retain_last => 2, dry_run => true, ids => array(1, 2))",
            s.ProcedureCall(
                "expire_snapshots",
                "",
                (s.Argument("t"), s.Argument(2, "retain_last"), s.Argument(True, "dry_run"), s.Argument((1, 2), "ids")),
            ),
            id="call",
        ),
    ],
)
def test_a_statement(text: str, statement: s.Statement) -> None:
    assert parse_statement(text) == statement._replace(text=text)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (
            "add columns (a int comment 'x' first, b.c string after d)",
            (
                s.AddColumnClause(s.ColumnDefinition("a", "int", comment="x"), first=True),
                s.AddColumnClause(s.ColumnDefinition("b.c", "string"), after="d"),
            ),
        ),
        ("drop columns (a, b)", (s.DropColumnClause("a"), s.DropColumnClause("b"))),
        ("rename column a to b", (s.RenameColumnClause("a", "b"),)),
        ("alter column a type bigint", (s.AlterColumn("a", type="bigint"),)),
        ("alter column a after b", (s.AlterColumn("a", after="b"),)),
        ("alter column a drop not null", (s.AlterColumn("a", nullable=True),)),
        ("alter column a set default f(1, 'x') + 2", (s.AlterColumn("a", default="f(1, 'x') + 2"),)),
        ("alter column a drop default", (s.AlterColumn("a", drop_default=True),)),
        (
            "add columns (a int not null default -1 comment 'x' first, b string default 'it''s, (so)')",
            (
                s.AddColumnClause(s.ColumnDefinition("a", "int", False, "x", "-1"), first=True),
                s.AddColumnClause(s.ColumnDefinition("b", "string", default="'it''s, (so)'")),
            ),
        ),
        ("set tblproperties ('a.b'='c')", (s.SetProperties((("a.b", "c"),)),)),
        ("unset tblproperties if exists ('a.b')", (s.UnsetProperties(("a.b",)),)),
        ("rename to db.u", (s.RenameTable("db.u"),)),
        (
            "add partition field bucket(8, id) as shard",
            (s.AddPartitionField(s.PartitionTransform("id", "bucket[8]", "shard")),),
        ),
        (
            "replace partition field days(ts) with hours(ts)",
            (
                s.DropPartitionField(s.PartitionTransform("ts", "day")),
                s.AddPartitionField(s.PartitionTransform("ts", "hour")),
            ),
        ),
        ("create branch b as of version 12", (s.CreateRef("branch", "b", 12),)),
        ("create or replace branch b", (s.CreateRef("branch", "b", replace=True),)),
        ("create tag g retain 2 hours", (s.CreateRef("tag", "g", retention=(("max_ref_age_ms", 7_200_000),)),)),
        (
            "replace branch b as of version 12 retain 7 days with snapshot retention 2 snapshots 3 minutes",
            (
                s.CreateRef(
                    *("branch", "b", 12, False, True, True),
                    (
                        ("max_ref_age_ms", 604_800_000),
                        ("min_snapshots_to_keep", 2),
                        ("max_snapshot_age_ms", 180_000),
                    ),
                ),
            ),
        ),
        ("drop tag if exists v1", (s.DropRef("tag", "v1", True),)),
        ("add partition (p='x')", ()),
        ("set location 'x'", (s.SetLocation("x"),)),
        ("set identifier fields a, b.c", (s.IdentifierFields(("a", "b.c")),)),
        ("drop identifier fields a", (s.IdentifierFields(("a",), dropped=True),)),
        (
            "write distributed by partition locally ordered by a desc, bucket(4, b) nulls last",
            (
                s.WriteOrder(
                    (
                        s.SortBy(s.PartitionTransform("a"), descending=True, nulls_first=False),
                        s.SortBy(s.PartitionTransform("b", "bucket[4]"), nulls_first=False),
                    ),
                    "hash",
                ),
            ),
        ),
        ("write ordered by a", (s.WriteOrder((s.SortBy(s.PartitionTransform("a")),), "range"),)),
        ("write unordered", (s.WriteOrder(),)),
        ("replace columns (a int)", (s.ReplaceColumns((s.ColumnDefinition("a", "int"),)),)),
        (
            "alter column a first, b comment 'x'",
            (s.AlterColumn("a", first=True), s.AlterColumn("b", comment="x")),
        ),
    ],
)
def test_alter_table(text: str, changes: tuple[s.Change, ...]) -> None:
    altered = parse_statement(f"alter table t {text}")
    assert isinstance(altered, s.Alter)
    assert altered.changes == changes


@pytest.mark.parametrize("text", ["update t set a = 'don''t'", "delete from t where a not like 'x%'", "merge into t"])
def test_row_level_commands_stay_as_they_were_written(text: str) -> None:
    assert parse_statement(text) == s.RowLevel(text)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("using (values (1, ')')) as s(id, v) on", "using (select * from (values (1, ')')) as s(id, v)) as s on"),
        ("using db.src s (a) on", "using (select * from db.src s (a)) as s on"),
        ("using (values (1)) `s x`(id) on", "using (select * from (values (1)) `s x`(id)) as `s x` on"),
    ],
)
def test_the_column_aliases_of_a_merge_source_move_inside(text: str, moved: str) -> None:
    rest = "t.id = 1 when matched then delete"
    assert with_aliases_inside(f"merge into t {text} {rest}") == f"merge into t {moved} {rest}"
    assert with_aliases_inside("merge into t using (values (1)) as s on t.id = 1 when matched then delete") is None


@pytest.mark.parametrize(
    "text",
    [
        "msck repair table x", "set a.b=c", "use db", "create view v as select 1", "create temp view v as select 1",
        "cache table t", "show tables in db",
        "create table t like u stored as orc", "describe database d", "drop view v", "create database d",
        "analyze table t compute statistics",
    ],
)  # fmt: skip
def test_what_is_spark_s_own_stays_text(text: str) -> None:
    assert parse_statement(text) == s.Other(text)


def test_metadata_views_need_no_quotes_and_both_spellings_of_a_column_are_known() -> None:
    assert parse_statement("select numdDeletedFiles from t$snapshots_view s") == s.QueryStatement(
        "select numDeletedFiles from `t$snapshots_view` s"
    )
    assert parse_statement("select numdDeletedFiles, '$x' from t") == s.QueryStatement(
        "select numdDeletedFiles, '$x' from t"
    )


def test_statements_are_split_outside_strings_and_comments() -> None:
    text = "-- first; not this\nselect ';' ; /* ; */ select `a;b`\n;\n;select \"x;\" -- end;"
    assert [piece.text for piece in split(text)] == ["select ';'", "select `a;b`", 'select "x;"']
    assert [text[piece.start :][: len(piece.text)] for piece in split(text)] == [piece.text for piece in split(text)]
    assert [type(one) for one in parse_all("select 1; drop table t")] == [s.QueryStatement, s.Drop]


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("create table t (a int", "expected `)`, found the end of the statement", 1, 22),
        (
            "create table t (a int) using iceberg\npartitioned by (bucket(id))",
            "`bucket` takes one column and one number",
            2,
            17,
        ),
        (
            "alter table t alter column a foo",
            "expected TYPE, COMMENT, FIRST, AFTER, DROP NOT NULL, SET DEFAULT or DROP DEFAULT, found `foo`",
            1,
            30,
        ),
        ("insert t values (1)", "expected INTO or OVERWRITE, found `t`", 1, 8),
        ("select 'abc", "this string is not closed", 1, 8),
        ("select `abc", "this name is not closed", 1, 8),
        ("select 1 /* abc", "this comment is not closed", 1, 10),
        ("call system.x(1 2)", "expected `,` or `)`, found `2`", 1, 17),
        ("call system.x(a => )", "expected a value, found `)`", 1, 20),
        (
            "create table t (id int, primary key (id)) using iceberg",
            "managed tables have no generated columns or constraints, found `primary`",
            1,
            25,
        ),
        ("as of '2024' delete from t", "expected a query after AS OF, found `delete`", 1, 14),
        ("drop table t u", "did not expect more, found `u`", 1, 14),
    ],
)
def test_a_mistake_is_marked_where_it_is(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_statement(text)
    assert caught.value.message == message
    first, _, shown = caught.value.place.partition("\n")
    assert first == f"line {line}, column {column}"
    assert shown.splitlines()[1].index("^") == 8 + column - 1


def test_the_table_is_known_even_where_the_rest_does_not_parse() -> None:
    assert target("alter table a.b change column x x int") == "a.b"
    assert target("select 1") is None
    assert asks_for_management("create table t (a int default 5) using ICEBERG")
    assert asks_for_management("create table t (a int) options (addTableManagement = 'true')")
    assert not asks_for_management("create table t (a int) using parquet options (addTableManagement 'false')")


def test_a_raw_string_ends_at_its_quote() -> None:
    """As in Spark, where a backslash before it is only a backslash."""
    assert parse_statement(r"delete from t where a = r'x\'") == s.RowLevel(r"delete from t where a = r'x\'")
    assert [piece.text for piece in split(r"select r'\'; select 2")] == [r"select r'\'", "select 2"]


@pytest.mark.parametrize(
    "text", ["7 + 1", "concat('a', ',', f(1, 2))", "current_timestamp() - interval 7 days", "(select max(x) from t)"]
)
def test_an_argument_of_call_that_is_no_literal_is_kept_as_text(text: str) -> None:
    called = parse_statement(f"call system.x({text}, since => {text})")
    assert isinstance(called, s.ProcedureCall)
    assert called.arguments == (s.Argument(s.Computed(text)), s.Argument(s.Computed(text), "since"))


def test_a_call_says_whether_it_is_of_a_catalog_that_is_not_ours() -> None:
    for text, elsewhere in (("mine.system.x(date '2020-01-01' + 1)", True), ("spark_catalog.system.x(1)", False)):
        called = parse_statement(f"call {text}")
        assert isinstance(called, s.ProcedureCall)
        assert called.is_of_another_catalog is elsewhere
