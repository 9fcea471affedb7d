"""Statements that once meant something else on a managed table than in Spark (M1 to M13, M21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake

pytestmark = pytest.mark.spark
Rows = Callable[[str], list[tuple[Any, ...]]]
Settings = Callable[[str, str], None]
REFUSED = (PySparkException, LakeproofError)


def make(lake: Lake, name: str, columns: str, *inserts: str, rest: str = "") -> None:
    """A managed table with one file per INSERT (or one per partition)."""
    lake.sql(f"create table {name} ({columns}) using iceberg {rest}")
    for values in inserts:
        lake.sql(f"insert into {name} {values}")


@pytest.mark.parametrize("rest", ["partitioned by (s)", ""])
def test_m1_not_like_keeps_what_is_like(lake: Lake, rows: Rows, name: str, rest: str) -> None:
    make(lake, name, "id int, s string", "values (1, 'ab'), (2, 'c')", "values (3, null)", rest=rest)
    for pattern, others in (("a%", 1), ("ab%", 1), ("%b", 1), ("%", 0), ("c", 1), ("_", 1), ("d%", 2)):
        assert rows(f"select count(*) from {name} where s not like '{pattern}'") == [(others,)], pattern
        assert rows(f"select count(*) from {name} where not (s like '{pattern}')") == [(others,)], pattern
    lake.sql(f"delete from {name} where s not like 'ab%'")
    assert rows(f"select id from {name} order by id") == [(1,), (3,)]


NULL_COMPARED = ["not (v = null)", "not (v = null or k = 7)", "not (d <= null)", "v <> null", "v not in (1, null)"]


def test_m2_a_comparison_with_null_is_never_true(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "k int, v int, d date", "values (1, 5, date'2024-01-01'), (2, null, null)", "values (7, 6, null)")
    for predicate in NULL_COMPARED:
        assert rows(f"select count(*) from {name} where {predicate}") == [(0,)], predicate
        lake.sql(f"delete from {name} where {predicate}")
        assert rows(f"select count(k) from {name}") == [(3,)], predicate


def test_m3_a_field_of_a_struct_is_not_the_column_of_its_name(lake: Lake, rows: Rows, name: str) -> None:
    make(
        lake,
        name,
        "id int, x int, p struct<x:int>",
        "values (1, 5, named_struct('x', 7)), (2, 5, named_struct('x', 8))",
    )
    assert rows(f"select min(p.x), max(p.x), min(x) from {name}") == [(7, 8, 5)]
    assert rows(f"select min(p.x) from {name}") == [(7,)]
    assert rows(f"select count(*) from {name} where p.x < 6") == [(0,)]
    lake.sql(f"delete from {name} where p.x < 6")
    assert rows(f"select id from {name} order by id") == [(1,), (2,)]
    lake.sql(f"delete from {name} where p.x between 7 and 8")
    assert rows(f"select id from {name}") == []


@pytest.mark.parametrize("command", ["delete from {t} where nosuch.k < 10", "update {t} set k = nosuch.k"])
def test_m4_an_unknown_qualifier_is_refused(lake: Lake, rows: Rows, name: str, command: str) -> None:
    make(lake, name, "k int", "values (1)")
    with pytest.raises(REFUSED, match="nosuch"):
        lake.sql(command.replace("{t}", name))
    assert rows(f"select * from {name}") == [(1,)]


def test_m5_a_quote_in_a_literal_stays(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "id int, s string", "values (1, 'a'), (2, 'b')")
    lake.sql(f"update {name} set s = 'don''t' where id = 1")
    merged = "(select 2 id, 'O''Neil' s union all select 3, 'it''s') q"
    lake.sql(
        f"merge into {name} t using {merged} on t.id = q.id when matched then update set s = q.s "
        "when not matched then insert (id, s) values (q.id, 'd''' || q.s)"
    )
    assert rows(f"select * from {name} order by id") == [(1, "don't"), (2, "O'Neil"), (3, "d'it's")]
    lake.sql(f"delete from {name} where s = 'O''Neil' or s = \"don't\"")
    assert rows(f"select id from {name}") == [(3,)]


REPRINTED = [
    "to_char(454, '000.00')",
    "cast(20 >>> 1 as string)",
    "(select listagg(c) from values ('a'), ('b') as v(c))",
    "(select cast(percentile_cont(0.5) within group (order by c) as string) from values (0), (10) as v(c))",
    "to_json(parse_json('{\"a\": 1}'))",
    "cast(try_divide(3, 2) as string)",
    "cast(date_part('days', date'2024-02-29') as string)",
]


def test_m6_no_text_is_printed_again(lake: Lake, rows: Rows, name: str) -> None:
    columns = [f"c{at}" for at in range(len(REPRINTED))]
    make(
        lake,
        name,
        ", ".join(f"{column} string" for column in columns),
        f"values ({', '.join(['null'] * len(columns))})",
    )
    lake.sql(f"update {name} set {', '.join(f'{c} = {e}' for c, e in zip(columns, REPRINTED, strict=True))}")
    assert rows(f"select * from {name}") == rows(f"select {', '.join(REPRINTED)}")


@pytest.mark.parametrize("kind", ["float", "double"])
def test_m7_infinity_is_found(lake: Lake, rows: Rows, name: str, kind: str) -> None:
    infinite = f"cast('Infinity' as {kind})"
    make(lake, name, f"id int, c {kind}", f"values (1, {infinite})", f"values (2, -{infinite})", "values (3, 1.5)")
    for predicate, found in (
        (f"c = {infinite}", [1]),
        (f"c <=> {infinite}", [1]),
        (f"c in (0, {infinite})", [1]),
        ("c > 1e39", [1]),
        ("c < -1e39", [2]),
        (f"c = -{infinite}", [2]),
        (f"c < {infinite}", [2, 3]),
        (f"c <> {infinite}", [2, 3]),
    ):
        assert rows(f"select id from {name} where {predicate} order by id") == [(one,) for one in found], predicate
        assert rows(f"select count(*) from {name} where {predicate}") == [(len(found),)], predicate


def test_m8_a_bigint_is_compared_exactly(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "b bigint", "values (9007199254740993)")
    for predicate, found in (
        ("b <> 9007199254740993.0", 0),
        ("b > 9007199254740992.5", 1),
        ("b = 9007199254740993.0", 1),
        ("b = 9007199254740992.0", 0),
        ("b < 9007199254740993.5", 1),
    ):
        assert rows(f"select count(*) from {name} where {predicate}") == [(found,)], predicate
    lake.sql(f"delete from {name} where b <> 9007199254740993.0")
    assert rows(f"select * from {name}") == [(9007199254740993,)]


@pytest.mark.parametrize(
    "command",
    [
        "update {t} set i = 3000000000",
        "update {t} set i = 'abc'",
        "merge into {t} t using (select 'abc' v) s on true when matched then update set i = s.v",
        "merge into {t} t using (select 3000000000 v) s on true when matched then update set i = s.v",
        "merge into {t} t using (select 'abc' v) s on false when not matched then insert (i) values (s.v)",
    ],
)
def test_m9_values_are_stored_as_by_insert(lake: Lake, rows: Rows, name: str, settings: Settings, command: str) -> None:
    make(lake, name, "i int", "values (1)")
    settings("spark.sql.ansi.enabled", "false")
    with pytest.raises(REFUSED):
        lake.sql(command.replace("{t}", name))
    assert rows(f"select * from {name}") == [(1,)]


def test_m10_an_hour_that_no_clock_shows(lake: Lake, rows: Rows, name: str, settings: Settings) -> None:
    settings("spark.sql.session.timeZone", "America/New_York")
    given = ["2024-03-10 01:30:00", "2024-03-10 02:30:00", "2024-03-10 03:30:00"]
    make(
        lake, name, "id int, n timestamp_ntz", *[f"values ({at}, timestamp_ntz'{one}')" for at, one in enumerate(given)]
    )
    for predicate, found in (
        ("n < timestamp_ntz'2024-03-10 02:30:00'", [0]),
        ("n = timestamp_ntz'2024-03-10 02:30:00'", [1]),
        ("n > timestamp_ntz'2024-03-10 02:30:00'", [2]),
        ("n >= timestamp_ntz'2024-03-10 03:30:00'", [2]),
        ("n in (timestamp_ntz'2024-03-10 02:30:00', timestamp_ntz'2024-03-10 01:30:00')", [0, 1]),
    ):
        assert rows(f"select id from {name} where {predicate} order by id") == [(one,) for one in found], predicate
        assert rows(f"select count(*) from {name} where {predicate}") == [(len(found),)], predicate
    assert rows(f"select cast(min(n) as string), cast(max(n) as string) from {name}") == [(given[0], given[2])]
    lake.sql(f"delete from {name} where n = timestamp_ntz'2024-03-10 02:30:00'")
    assert rows(f"select cast(min(n) as string) from {name} where n > timestamp_ntz'2024-03-10 01:30:00'") == [
        (given[2],)
    ]
    assert rows(f"select id from {name} order by id") == [(0,), (2,)]


def test_m11_a_table_goes_by_its_own_name(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "id int, v string", "values (1, 'a'), (2, 'b')")
    make(lake, f"{name}_s", "id int", "values (2)")
    for text, found in (
        (f"select {name}.id from {name} order by {name}.id", [(1,), (2,)]),
        (f"select {name}.* from {name} where {name}.id = 1", [(1, "a")]),
        (f"select default.{name}.v from default.{name} where id = 2", [("b",)]),
        (f"select id from {name} where exists (select 1 from {name}_s where {name}_s.id = {name}.id)", [(2,)]),
        (f"select q.id from {name} q join {name}_s on {name}_s.id = q.id", [(2,)]),
    ):
        assert rows(text) == found, text


def test_m12_a_table_is_inserted_into_itself_by_date(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "id int, d date, ts timestamp", "values (1, date'2024-01-01', timestamp'2024-01-01 10:00:00')")
    lake.sql(f"insert into {name} select * from {name} where d < date'2024-01-02'")
    lake.sql(f"insert into {name} select * from {name} where ts > timestamp'2024-01-01 09:59:59.5'")
    assert rows(f"select id from {name}") == [(1,)] * 4


def test_m13_parameters_reach_every_command(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "id int, v string", "values (1, 'a'), (2, 'b'), (3, 'c')")
    lake.spark.sql(f"delete from {name} where id = :x", args={"x": 1})
    lake.spark.sql(f"update {name} set v = ? where id = ?", args=["it's", 2])
    lake.spark.sql(
        f"merge into {name} t using (select :k id) s on t.id = s.id when matched then update set v = :v",
        {"k": 3, "v": "?"},
    )
    assert rows(f"select * from {name} order by id") == [(2, "it's"), (3, "?")]
    with pytest.raises(REFUSED, match=r"(?i)syntax"):
        lake.sql(f"delete {name} where id = 2")


@pytest.mark.parametrize("column", ["c.d", "c`d", "größe 値", "a b", "Select"])
def test_m13_a_column_may_have_any_name(lake: Lake, rows: Rows, name: str, column: str) -> None:
    said = "`" + column.replace("`", "``") + "`"
    rest = f"partitioned by ({said})" if column.isalpha() or " " in column else ""
    make(lake, name, f"id int, {said} int", "values (1, 10), (2, 20), (3, 30)", rest=rest)
    lake.sql(f"delete from {name} where {said} = 10")
    lake.sql(f"update {name} set {said} = {said} + 1 where {name}.{said} < 25")
    lake.sql(
        f"merge into {name} t using (select 3 id, 7 {said} union all select 4, 8) s on t.id = s.id "
        f"when matched then update set {said} = s.{said} when not matched then insert *"
    )
    assert rows(f"select id, {said} from {name} order by id") == [(2, 21), (3, 7), (4, 8)]
    assert rows(f"select count(*), min({said}), max({said}) from {name} where {said} < 21") == [(2, 7, 8)]
    if not rest:
        lake.sql(f"alter table {name} rename column {said} to `new.{column.replace('`', '``')}`")
        assert lake.spark.table(name).columns == ["id", f"new.{column}"]
        lake.sql(f"alter table {name} drop column `new.{column.replace('`', '``')}`")
        assert lake.spark.table(name).columns == ["id"]


ODD_NUMBERS = ["'NaN'", "'Infinity'", "'-Infinity'", "0", "-0.0", "9223372036854775807", "1e300", "null"]
ASKED_OF_NUMBERS = [
    "c > 9223372036854775807",
    "c >= 9223372036854775807",
    "c < 9223372036854775807",
    "c > 1e300",
    "c = 'NaN'",
    "c <> 0",
    "not (c > 0)",
    "c = 0",
    "c between -1 and 9223372036854775807",
    "c in (0, double('NaN'))",
]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_m21_odd_numbers_are_counted_after_a_delete(lake: Lake, rows: Rows, name: str, mode: str) -> None:
    values = [(at, one) for at, one in enumerate([*ODD_NUMBERS, *ODD_NUMBERS])]
    half = len(values) // 2
    parts = [", ".join(f"({at}, cast({one} as double))" for at, one in some) for some in (values[:half], values[half:])]
    rest = f"tblproperties ('write.delete.mode' = '{mode}')"
    make(lake, name, "id int, c double", *[f"values {part}" for part in parts], rest=rest)
    lake.sql(f"delete from {name} where id in (2, 3)")
    kept = ", ".join(f"({at}, cast({one} as double))" for at, one in values if at not in (2, 3))
    for predicate in ASKED_OF_NUMBERS:
        wanted = rows(f"select count(*) from values {kept} as v(id, c) where {predicate}")
        assert rows(f"select count(*) from {name} where {predicate}") == wanted, predicate
        assert rows(f"select count(id) from {name} where {predicate}") == wanted, predicate


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_value_that_nobody_stores_is_never_computed(lake: Lake, rows: Rows, name: str, mode: str) -> None:
    make(lake, name, "id int, y decimal(9,2)", "values (4, 5)", rest=f"tblproperties ('write.update.mode' = '{mode}')")
    lake.sql(f"update {name} set y = 9007199254740993.0 where id = 5")
    lake.sql(f"update {name} set y = id / (1 - 1) where id % 5 = 0")
    lake.sql(f"merge into {name} t using (select 5 id) s on s.id = t.id when matched then update set y = 1 / 0")
    assert rows(f"select * from {name}") == [(4, 5)]
    with pytest.raises(LakeproofError, match="due to an overflow"):
        lake.sql(f"update {name} set y = 9007199254740993.0 where id = 4")


def test_an_insert_may_ask_its_own_table_in_a_subquery(lake: Lake, rows: Rows, name: str) -> None:
    make(lake, name, "id int, v int", "values (1, 1), (2, null), (3, 3)")
    lake.sql(f"insert into {name} select id + 10, v from {name} where id not in (select v from {name} where v > 1)")
    with_cte = f"with c as (select max(id) m from {name}) insert into {name}"
    lake.sql(f"{with_cte} select m + 1, 0 from c where m > (select count(*) from {name})")
    lake.sql(f"insert into {name} select :n, 0 where exists (select 1 from {name} where id = :n - 1)", {"n": 14})
    assert rows(f"select id from {name} order by id") == [(1,), (2,), (3,), (11,), (12,), (13,), (14,)]
    lake.sql(f"insert overwrite {name} select * from {name} where id = (select min(id) from {name})")
    assert rows(f"select * from {name}") == [(1, 1)]


@pytest.mark.parametrize("collection", ["", ", l array<double>"])
def test_nan_is_found_in_files_that_the_driver_or_a_worker_wrote(
    lake: Lake, rows: Rows, name: str, collection: str
) -> None:
    columns, more = f"id int, a double, q struct<x:float>{collection}", ", array(double('NaN'))" if collection else ""
    values = [(1, "1.5D", "1.5F"), (2, "double('NaN')", "float('NaN')"), (3, "2.5D", "null")]
    listed = ", ".join(f"({n}, {a}, named_struct('x', {x}){more})" for n, a, x in values)
    make(lake, name, columns, f"values {listed}")
    for step in (f"update {name} set id = id + 10", f"call system.rewrite_data_files('{name}')"):
        lake.sql(step)
        assert rows(f"select id from {name} where a > 5") == [(12,)], step
        assert rows(f"select id from {name} where q.x >= float('Infinity')") == [(12,)], step
        assert rows(f"select id from {name} where a = double('NaN') and q.x > 1.5") == [(12,)], step
        assert rows(f"select id from {name} where a < 2") == [(11,)], step


@pytest.mark.parametrize("kind", ["double", "float"])
def test_the_two_zeros_are_one_value(lake: Lake, rows: Rows, name: str, kind: str) -> None:
    columns = f"id int, a {kind}, q struct<x:{kind}>"
    zeros = [f"values ({n}, {zero}, named_struct('x', {zero}))" for n, zero in ((1, "0.0"), (2, f"{kind}('-0.0')"))]
    make(lake, name, columns, *zeros)
    for zero in ("0.0D", "double('-0.0')", "0.0F", "float('-0.0')"):
        for asked in ("{} = {z}", "{} <= {z} and {} >= {z}", "{} in ({z}, 5)", "{} <=> {z}", "not {} <> {z}"):
            for column in ("a", "q.x"):
                predicate = asked.replace("{z}", zero).replace("{}", column)
                assert rows(f"select id from {name} where {predicate} order by id") == [(1,), (2,)], predicate
                assert rows(f"select count(*) from {name} where {predicate}") == [(2,)], predicate
    lake.sql(f"update {name} set id = id + 10 where a = 0.0")
    assert rows(f"select id from {name} order by id") == [(11,), (12,)]
    lake.sql(f"delete from {name} where a = {kind}('-0.0')")
    assert rows(f"select id from {name}") == []
