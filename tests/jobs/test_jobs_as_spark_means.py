"""Statements that were once taken for something else than Spark means by them: a class of mistakes a test."""

from __future__ import annotations

import pytest
from test_jobs_defects import jobs, refused, table, two, verdict

T = table("id int, v int, name string, amt decimal(9,2), d date, ts timestamp, arr array<int>, flag boolean")
DROP = "delete from t where id = 1"


def merged(condition: str) -> str:
    """A MERGE from a source that nobody knows, beside a DELETE."""
    return T + two(f"merge into t using s on t.id = s.id when matched and {condition} then update set v = 9", DROP)


@pytest.mark.parametrize("condition", ["s.gone is null", "s.old = s.new", "s.old <=> s.new", "not (s.old < s.new)"])
def test_a_free_column_of_no_known_type_may_be_null_or_equal_to_another(condition: str) -> None:
    assert verdict(merged(condition)).verdict == "violated"


def test_a_free_column_may_hold_what_a_column_of_another_name_holds() -> None:
    body = two("merge into t using s on t.name = s.title when matched then update set v = 9", DROP)
    assert verdict(T + body).verdict == "violated"


def test_a_column_of_an_array_may_be_null() -> None:
    assert verdict(T + two("update t set v = 9 where arr is null", "delete from t where arr is null")).verdict == (
        "violated"
    )


@pytest.mark.parametrize(
    "where", ["amt = 0.7D", "amt > 0.5D and amt < 0.7D", "amt < 0.705", "amt > 0.704 and amt < 0.711"]
)
def test_a_decimal_column_has_values_beside_numbers_of_other_kinds(where: str) -> None:
    assert verdict(T + two(f"update t set v = 9 where {where}", f"delete from t where {where}")).verdict == "violated"


def test_a_double_equals_the_decimal_of_the_same_digits() -> None:
    rows = "insert into t values (1, cast(0.7 as double), 0.70);\n"
    body = rows + two("update t set id = 2 where a = b", "delete from t where a = b")
    assert verdict(table("id int, a double, b decimal(9,2)") + body).verdict == "violated"


@pytest.mark.parametrize(
    "condition", ["abs(name) = 1", "length(id) = 1", "lower(d) = 'x'", "d + 1 = date '2026-01-02'", "amt * id = 1"]
)
def test_a_function_of_a_value_that_is_not_of_its_kind_is_not_computed(condition: str) -> None:
    rows = "insert into t values (1, 3, 'a', 1.00, date '2026-01-01', null, null, true);\n"
    body = two(f"update t set v = 9 where {condition}", f"delete from t where {condition}")
    assert verdict(T + rows + body).verdict == "violated"


def test_tables_of_one_name_in_two_namespaces_are_two() -> None:
    body = "merge into prod.orders t using staging.orders s on t.id = s.id when matched then update set v = s.v"
    only_one = jobs(table("id int, v int", "prod.orders") + f"-- job: a\n{body};\n")
    [statement] = only_one.jobs[0].statements
    assert statement.source is not None
    assert (statement.table, statement.source.free) == ("prod.orders", True)
    both = jobs(
        table("id int, v int", "prod.orders") + table("id int, v int", "staging.orders") + f"-- job: a\n{body};\n"
    )
    [statement] = both.jobs[0].statements
    assert statement.source is not None
    assert statement.source.table == "staging.orders"


def test_a_qualifier_may_be_the_whole_name_of_its_table() -> None:
    body = """-- job: a
merge into prod.orders using staging.orders on prod.orders.id = staging.orders.id
  when matched and staging.orders.v = 5 then update set v = 9;
-- job: b
delete from prod.orders where orders.id = 1;
"""
    assert verdict(table("id int, v int", "prod.orders") + body).verdict == "violated"
    error = refused(table("id int, v int", "prod.orders") + body.replace("on prod.orders.id", "on orders.id"))
    assert "ambiguous" in error.message


def test_a_short_and_a_long_name_of_one_statement_are_not_taken_for_one_table() -> None:
    body = "-- job: a\nmerge into orders t using staging.orders s on t.id = s.id when matched then delete;\n"
    assert "one table or two" in refused(table("id int", "orders") + body).message


@pytest.mark.parametrize(
    "picked", ["sum(v) over ()", "explode(arr)", "(select max(id) from t y)"], ids=["window", "generator", "subquery"]
)
def test_what_is_selected_under_exists_may_decide_whether_a_row_is_there(picked: str) -> None:
    rows = "insert into t values (1, 0, null, null, null, null, null, null);\n"
    read = jobs(T + rows + two(f"delete from t where exists (select {picked} from t x where x.id = 9)", DROP))
    assert any("has no exact meaning here" in why for why in read.open)


@pytest.mark.parametrize("source", ["(select count(id, v) from t x) = 1", "exists (select 1 from t as x(v, id))"])
def test_what_a_query_says_besides_its_plain_parts_is_not_left_out(source: str) -> None:
    assert jobs(T + two(f"delete from t where {source}", DROP)).open


@pytest.mark.parametrize("source", ["u version as of 3 s", "u tablesample (10 percent) s", "u as s(v, id)"])
def test_a_source_that_is_not_all_of_a_table_as_it_is_may_hold_any_row(source: str) -> None:
    text = T + table("id int, v int", "u")
    read = jobs(text + two(f"merge into t using {source} on t.id = s.id when matched then update set v = s.v", DROP))
    [statement] = read.jobs[0].statements
    assert statement.source is not None
    assert statement.source.free
    assert read.open


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        pytest.param("truncate table t partition (d = date '2026-01-01')", "TRUNCATE with PARTITION", id="TRUNCATE"),
        pytest.param("insert overwrite t partition (v = 1) values (1)", "is not partitioned by v", id="PARTITION"),
        pytest.param("insert into t (id, id) values (1, 2)", "named twice", id="a column twice"),
        pytest.param(
            "merge into t using s on t.id = s.id when matched then do nothing", "DO NOTHING", id="another action"
        ),
        pytest.param(
            "merge into t using s on t.id = s.id when not matched then insert (id, id) values (1, 2)",
            "named twice",
            id="a column of a MERGE twice",
        ),
        pytest.param("call system.expire_snapshots('t')", "Of procedures only", id="another procedure"),
        pytest.param("call system.rewrite_data_files(strategy => 'sort')", "needs a table", id="no table"),
    ],
)
def test_a_part_that_is_not_looked_at_is_refused(statement: str, says: str) -> None:
    assert says in refused(table("id int, v int") + f"-- job: a\n{statement};\n").message


def test_a_table_made_of_a_query_is_refused() -> None:
    error = refused("create table t (id int) using iceberg as select 1;\n-- job: a\n" + DROP + ";\n")
    assert "AS SELECT" in error.message


@pytest.mark.parametrize("arguments", ["'lake.db.t'", "strategy => 'sort', table => 't'", "table => 'db.`t`'"])
def test_the_table_of_a_compaction_may_stand_anywhere(arguments: str) -> None:
    [statement] = jobs(T + f"-- job: a\ncall prod.system.rewrite_data_files({arguments});\n").jobs[0].statements
    assert statement.table == "t"


def test_a_compaction_of_a_part_is_said_to_be_taken_for_one_of_the_whole() -> None:
    read = jobs(T + "-- job: a\ncall system.rewrite_data_files(table => 't', where => 'id = 1');\n")
    assert read.notes == ("the compaction's WHERE is not looked at: it may rewrite any row",)


def test_a_partition_with_fewer_columns_than_the_table_is_overwritten_dynamically() -> None:
    text = (
        "set spark.sql.sources.partitionOverwriteMode = dynamic;\n"
        + table("id int, d int, h int", partitioned="d, h")
        + "-- job: a\ninsert overwrite t partition (d = 1) values (1, 2);\n"
    )
    [statement] = jobs(text).jobs[0].statements
    assert str(statement.command) == "INSERT OVERWRITE of partitions"
    [whole] = jobs(text.replace("(d = 1) values (1, 2)", "(d = 1, h = 2) values (1)")).jobs[0].statements
    assert str(whole.command) == "INSERT OVERWRITE"


@pytest.mark.parametrize(
    "text", ["name = 'it''s' -- don't keep", 'name = "it\'s"', "name = 'it\\'s'", "/* it's */ name = 'it''s'"]
)
def test_a_quote_in_a_comment_or_in_other_quotes_ends_no_string(text: str) -> None:
    rows = 'insert into t values (1, "it\'s");\n'
    body = rows + two(f"update t set id = 2 where {text}", f"delete from t where {text}")
    read = jobs(table("id int, name string") + body)
    assert read.notes == ()
    assert verdict(table("id int, name string") + body).verdict == "violated"


def test_a_condition_that_is_also_written_keeps_its_value_for_each_row() -> None:
    body = two("update t set flag = (lower(name) = 'x') where lower(name) = 'x'", DROP)
    assert verdict(T + body).verdict == "violated"


def test_a_value_that_is_written_twice_may_be_what_either_column_is_asked_for() -> None:
    columns = "id int, a string, b string, c string"
    body = two("update t set a = reverse(c), b = reverse(c) where id = 1", "delete from t where a = 'X' and b > 'Y'")
    first = jobs(table(columns) + body)
    assert first.notes == ("the value of `REVERSE(c)` is not known: it may be any",)
    always = body.replace("b > 'Y'", "b is not null")
    assert verdict(table(columns) + always).verdict == "violated"


@pytest.mark.parametrize("source", ["(values (1, 'a'), (2, 'b')) as s(id, name)", "s"])
def test_an_unknown_condition_on_two_rows_holds_of_some_pairs_only(source: str) -> None:
    """Once it was a property of the target row alone: each source row matched it, and the MERGE always failed."""
    on = "soundex(t.name) = soundex(s.name)"
    body = two(f"merge into t using {source} on {on} when matched then update set v = 9", DROP)
    found = verdict(T + body)
    assert found.verdict == "violated"
    assert sum("SOUNDEX" in note for note in found.more["cautious"]) == 1


def test_an_unknown_condition_of_a_listed_row_may_differ_from_row_to_row() -> None:
    source = "(values (1, 'a'), (1, 'b')) as s(id, name)"
    body = two(f"merge into t using {source} on t.id = s.id and soundex(s.name) = 'A' when matched then delete", DROP)
    assert verdict(T + body.replace("delete;", "update set v = 9;")).verdict == "violated"


@pytest.mark.parametrize("where", ["ts < current_timestamp() - interval 30 days", "d < current_date", "rand() < 0.5"])
def test_what_time_or_chance_decide_may_change_from_run_to_run(where: str) -> None:
    [statement] = jobs(T + f"-- job: a\ndelete from t where {where};\n").jobs[0].statements
    choices = [one for one in str(statement.where).split("Unknown(") if "choice" in one]
    assert choices, "besides what a row is like, each run has something to say"
    assert verdict(T + two(f"delete from t where {where}", "update t set v = 9")).verdict == "violated"


def test_a_row_that_two_source_rows_match_fails_the_merge_whatever_the_conditions_say() -> None:
    source = "(values (1, 1), (1, 2)) as s(id, v)"
    once = two(f"merge into t using {source} on t.id = s.id when matched and s.v = 1 then update set v = 9", DROP)
    assert verdict(T + once).verdict == "unknown"
    rows = "insert into t values (1, 0, null, null, null, null, null, null);\n"
    gone = f"-- job: a\nmerge into t using {source} on t.id = s.id when matched then delete;\n"
    found = verdict(T + rows + gone)
    assert found.verdict == "holds", "a row that goes may be matched twice"


@pytest.mark.parametrize("text", ["'nan'", "'infinity'", "'1_000'"])
def test_what_python_takes_for_a_number_and_spark_does_not_is_not_one(text: str) -> None:
    read = jobs(table("x double") + f"-- job: a\ndelete from t where x < cast({text} as double);\n")
    assert len(read.notes) == 1


def test_distinct_from_is_computed() -> None:
    body = two("update t set id = 9 where v is distinct from 3", "delete from t where v is null")
    read = jobs(T + body)
    assert read.notes == ()
    assert verdict(T + body).verdict == "violated"


def test_insert_from_a_table_reads_that_table() -> None:
    [statement] = jobs(T + "-- job: a\ninsert into t table t;\n").jobs[0].statements
    assert statement.source is not None
    assert statement.source.table == "t"


@pytest.mark.parametrize("where", ["t.p.x = 5", "p.x = 5", "t.p.q.x = 5"])
def test_a_field_of_a_field_is_of_its_column(where: str) -> None:
    read = jobs(table("id int, p struct<x:int, q:struct<x:int>>") + f"-- job: a\ndelete from t where {where};\n")
    assert read.notes == (f"`{where}` is not known: each row may match it or not",)


def test_a_number_in_front_of_a_column_is_added_as_one_behind_it() -> None:
    assert jobs(T + "-- job: a\nupdate t set v = 1 + v;\n").notes == ()
    assert jobs(T + "-- job: a\nupdate t set v = 1 - v;\n").notes == (
        "the value of `1 - v` is not known: it may be any",
    )
