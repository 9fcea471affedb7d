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


@pytest.mark.parametrize("place", ["", "first", "after v"])
@pytest.mark.parametrize("by_columns", ["true", "false"])
def test_a_default_goes_into_its_own_column(lake: Lake, rows: Rows, name: str, place: str, by_columns: str) -> None:
    """Spark's reader of rows takes the columns that a file lacks for the last ones, and puts defaults over values."""
    lake.sql(f"create table {name} (id int, v string default 'v', n int default 1) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1, 'own', 5), (2, null, null)")
    lake.sql(f"alter table {name} add column raw binary default X'ff41' {place}")
    lake.sql(f"insert into {name} (id, raw) values (3, X'00'), (4, null)")
    lake.sql(f"alter table {name} add column level int default 7 {place}")
    named = f"select id, v, n, hex(raw), level from {name} order by id"
    expected = [(1, "own", 5, "FF41", 7), (2, None, None, "FF41", 7), (3, "v", 1, "00", 7), (4, "v", 1, None, 7)]
    lake.spark.conf.set("spark.sql.parquet.enableVectorizedReader", by_columns)
    try:
        assert rows(named) == expected
        assert rows(f"select id from {name} where raw = X'ff41' order by id") == [(1,), (2,)]
        lake.sql(f"update {name} set n = 6 where id = 1")
        lake.sql(f"call system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    assert rows(named) == [(1, "own", 6, "FF41", 7), *expected[1:]]


def test_defaults_of_other_engines_are_right_or_refused(lake: Lake, rows: Rows, name: str) -> None:
    lake.sql(f"create table {name} (id int, st struct<a: int>) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1, named_struct('a', 1))")
    number = UUID("41424344-4142-4344-4142-434441424344")
    added = [AddColumn("u", UUIDType(), default=number), AddColumn("three", FixedType(3), default=b"xyz")]
    for column, kind in zip(added, (r"uuid", r"fixed\[3\]"), strict=True):
        alter_schema(lake.engine.load(name), [column])
        for text in (f"select id from {name}", f"update {name} set id = 2"):
            with pytest.raises(InvalidInput, match=f"column `{column.name}` of type {kind} has an initial default"):
                rows(text)
        lake.sql(f"alter table {name} drop column {column.name}")
    alter_schema(lake.engine.load(name), [AddColumn("later", FixedType(3))])
    lake.sql(f"alter table {name} alter column later set default X'616263'")
    with pytest.raises(InvalidInput, match="a default of 2 bytes cannot be stored as fixed"):
        lake.sql(f"alter table {name} alter column later set default X'6162'")
    lake.sql(f"insert into {name} (id) values (2)")
    assert rows(f"select id, cast(later as string) from {name} order by id") == [(1, None), (2, "abc")]
    alter_schema(lake.engine.load(name), [AddColumn("st.b", IntegerType(), default=5)])
    for text in (f"select id from {name}", f"update {name} set id = 2", f"select count(st.b) from {name}"):
        with pytest.raises(InvalidInput, match=r"column `st\.b` has an initial default inside a struct"):
            rows(text)


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("date", "date '9999-12-31'", "9999-12-31"),
        ("timestamp_ntz", "timestamp_ntz '0001-01-01 00:00:00'", "0001-01-01 00:00:00"),
        ("timestamp", "timestamp '9999-12-31 23:59:59.999999 UTC'", "253402300799999999"),
        ("timestamp", "timestamp '0001-01-01 00:00:00 UTC'", "-62135596800000000"),
        ("date", "date '+10000-01-01'", None),
        ("timestamp_ntz", "timestamp_ntz '0000-12-31 00:00:00'", None),
        ("timestamp", "timestamp '9999-12-31 23:59:59.999999 UTC' + interval 1 microsecond", None),
    ],
)
def test_a_default_is_in_the_years_that_metadata_can_write(
    lake: Lake, rows: Rows, name: str, kind: str, value: str, kept: str | None
) -> None:
    lake.sql(f"create table {name} (id int) using iceberg {V3}")
    lake.sql(f"insert into {name} values (1)")
    text = f"alter table {name} add column c {kind} default {value}"
    if kept is None:
        with pytest.raises(InvalidInput, match="in the years 1 to 9999"):
            lake.sql(text)
        return
    lake.sql(text)
    shown = "cast(unix_micros(c) as string)" if kind == "timestamp" else "cast(c as string)"
    assert rows(f"select {shown} from {name}") == [(kept,)]
    assert rows(f"select count(*) from {name} where c = {value}") == [(1,)]


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
