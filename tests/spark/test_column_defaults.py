"""Defaults of columns on tables of format version 3: of rows that are older than the column, and of new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import FixedType, IntegerType, UUIDType
from lakeproof.iceberg.tables.evolution import AddColumn, alter_schema
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
V3 = "tblproperties ('format-version'='3')"
ADDED = (
    ("level int", "7", "7"),
    ("day date", "date '2024-02-29'", "2024-02-29"),
    ("price decimal(30, 2)", "14.2", "14.20"),
    ("at timestamp", "timestamp '2024-01-01 00:00:00.000001 UTC'", "2024-01-01 01:00:00.000001"),
    ("word string", r"'it\'s \\ ok\n'", "it's \\ ok\n"),
    ("yes boolean", "1 < 2", "true"),
    ("f float", "cast(0.1 as float)", "0.1"),
    ("raw binary", "X'4142'", "AB"),
    ("n bigint not null", "-5", "-5"),
)


@pytest.fixture
def filled(lake: Lake, name: str) -> str:
    """A table with two rows, and then columns with defaults."""
    lake.sql(f"create table {name} (id int, v string) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1, 'a'), (2, 'b')")
    for column, value, _ in ADDED:
        lake.sql(f"alter table {name} add column {column} default {value}")
    return name


def test_older_rows_have_the_default_in_every_statement(lake: Lake, rows: Rows, filled: str) -> None:
    texts = ", ".join(f"cast({column.split()[0]} as string)" for column, _, _ in ADDED)
    expected = [tuple(text for _, _, text in ADDED)] * 2
    assert rows(f"select {texts} from {filled}") == expected
    assert rows(f"select count(*) from {filled} where level = 7 and raw = X'4142' and word like 'it%'") == [(2,)]
    assert rows(f"select count(*) from {filled} where level is null or level > 7 or day < date '2000-01-01'") == [(0,)]
    assert rows(f"select min(level), max(level), count(level), count(*) from {filled}") == [(7, 7, 2, 2)]
    by_pyiceberg = lake.engine.load(filled).scan().to_arrow().to_pylist()
    assert [(row["level"], row["raw"], row["word"]) for row in by_pyiceberg] == [(7, b"AB", "it's \\ ok\n")] * 2
    lake.sql(f"update {filled} set v = 'B' where id = 2")
    lake.sql(f"alter table {filled} alter column level set default 8")
    lake.sql(f"call system.rewrite_data_files(table => '{filled}', options => map('rewrite-all', 'true'))")
    assert rows(f"select {texts} from {filled}") == expected
    lake.sql(f"delete from {filled} where raw = X'4142' and id = 1")
    lake.sql(f"delete from {filled} where level = 7")
    assert rows(f"select * from {filled}") == []


def test_defaults_of_other_engines_are_right_or_refused(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, st struct<a: int>) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1, named_struct('a', 1))")
    number = UUID("41424344-4142-4344-4142-434441424344")
    added = [AddColumn("u", UUIDType(), default=number), AddColumn("three", FixedType(3), default=b"xyz")]
    alter_schema(lake.engine.load(name), added)
    texts = "cast(u as string), cast(three as string)"
    assert rows(f"select {texts} from {name}") == [("ABCDABCDABCDABCD", "xyz")]
    assert rows(f"select count(*) from {name} where three = X'78797A' and u is not null") == [(1,)]
    lake.sql(f"alter table {name} alter column three set default X'616263'")
    with pytest.raises(InvalidInput, match="a default of 2 bytes cannot be stored as fixed"):
        lake.sql(f"alter table {name} alter column three set default X'6162'")
    alter_schema(lake.engine.load(name), [AddColumn("st.b", IntegerType(), default=5)])
    for text in (f"select id from {name}", f"update {name} set id = 2", f"select count(st.b) from {name}"):
        with pytest.raises(InvalidInput, match=r"column `st\.b` has an initial default inside a struct"):
            rows(text)


@pytest.mark.parametrize("where", ["level is null", "level is not null", "level = 7", "level < 7"])
def test_whole_files_go_only_where_the_default_matches(lake: Lake, rows: Rows, name: str, where: str) -> None:
    lake.sql(f"create table {name} (id int) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1), (2)")
    lake.sql(f"alter table {name} add column level int default 7")
    lake.sql(f"delete from {name} where {where}")
    left = [] if where in ("level is not null", "level = 7") else [(1, 7), (2, 7)]
    assert sorted(rows(f"select * from {name}")) == left


def test_new_rows_have_the_default_that_holds_now(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, v string default 'none', n int default 1) using iceberg {V3}")
    lake.sql(f"insert into {name} (id) values (1)")
    lake.sql(f"insert into {name} values (2, default, 2), (3, 'c', default)")
    lake.sql(f"alter table {name} alter column n set default 9")
    lake.sql(f"alter table {name} alter column v drop default")
    lake.sql(f"insert into {name} (id) values (4)")
    lake.sql(f"update {name} set n = default where id = 1")
    lake.sql(
        f"merge into {name} t using (values (2), (5), (6)) s(id) on t.id = s.id when matched then update "
        "set n = default when not matched and s.id = 5 then insert (id) values (s.id) "
        "when not matched then insert (id, n) values (6, 0)"
    )
    assert sorted(rows(f"select * from {name}")) == [
        (1, "none", 9), (2, "none", 9), (3, "c", 1), (4, None, 9), (5, None, 9), (6, None, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("x int default 'a'", "a default of type string cannot be stored as int"),
        ("x int default 3000000000", "this default does not fit into int"),
        ("x date default current_date()", "a default must be the same whenever it is computed"),
        ("x double default rand()", "a default must be the same whenever it is computed"),
        ("x int default (select 1)", "a default must be the same whenever it is computed"),
        ("x double default double('NaN')", "a default cannot be nan"),
        ("x array<int> default array(1)", "can have no default but null"),
        ("x int default id", "`id` cannot be resolved"),
        ("st.b int default 5", "a field inside a struct can have no default"),
    ],
)
def test_a_default_that_cannot_be_is_refused(lake: Lake, name: str, column: str, said: str) -> None:
    lake.sql(f"create table {name} (id int, st struct<a: int>) using iceberg {V3}")
    with pytest.raises(InvalidInput, match="(?s)" + said.replace("(", r"\(")):
        lake.sql(f"alter table {name} add column {column}")
    assert sorted(lake.engine.load(name).schema().column_names) == ["id", "st", "st.a"]


def test_older_format_versions_have_no_defaults(lake: Lake, name: str) -> None:
    refused = "columns of a table of format version 2 have no defaults"
    with pytest.raises(InvalidInput, match=refused):
        lake.sql(f"create table {name} (id int default 5) using iceberg")
    assert lake.engine.find(name) is None
    lake.sql(f"create table {name} (id int) using iceberg")
    for change in ("add column x int default 5", "alter column id set default 5", "alter column id drop default"):
        with pytest.raises(InvalidInput, match=refused):
            lake.sql(f"alter table {name} {change}")
