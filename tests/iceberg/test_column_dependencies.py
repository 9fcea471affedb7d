"""`src=dest:transform`: wrong ones are refused with each problem named; inferred predicates spare no matching row."""

import datetime
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lakehouse import Lakehouse, insert

from lakeproof.errors import InvalidInput
from lakeproof.filters import applied
from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.pyiceberg_names import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    Schema,
    StringType,
    StructType,
    TimestampType,
)
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.column_dependencies import (
    Dependency,
    check_dependencies,
    dependency_transform,
    infer,
    parse_dependencies,
)
from lakeproof.iceberg.tables.evolution import DropColumn, alter_schema
from lakeproof.iceberg.tables.tables import PartitionBy, create_table

SCHEMA = Schema(
    NestedField(1, "date", StringType()),
    NestedField(2, "day", StringType()),
    NestedField(3, "ts", TimestampType()),
    NestedField(4, "year", IntegerType()),
    NestedField(5, "id", LongType()),
    NestedField(6, "bucket", IntegerType()),
    NestedField(7, "tens", LongType()),
    NestedField(8, "on", DateType()),
    NestedField(9, "inner", StructType(NestedField(10, "x", LongType()))),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("date=day:extract[2]", (Dependency("date", "day", "extract[2]"),)),
        (
            " ts=year:year , id=bucket:bucket[8],id=tens:truncate[10]",
            (
                Dependency("ts", "year", "year"),
                Dependency("id", "bucket", "bucket[8]"),
                Dependency("id", "tens", "truncate[10]"),
            ),
        ),
    ],
)
def test_the_text_is_a_list(text: str, expected: tuple[Dependency, ...]) -> None:
    assert parse_dependencies(text) == expected


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("day", ["`day` is not of the form source=destination:transform"], id="no transform"),
        pytest.param("date=day:substr[2]", ["`substr[2]` is not a transform"], id="unknown transform"),
        pytest.param("date=day:truncate", ["`truncate` is not a transform"], id="a width is missing"),
        pytest.param("date=day:truncate[0]", ["`truncate[0]` is not a transform"], id="a width of nothing"),
        pytest.param("ts=year:year[2]", ["`year[2]` is not a transform"], id="a width too many"),
        pytest.param("when=day:identity", ["there is no column `when`"], id="unknown source"),
        pytest.param("ts=day:year", ["it gives int, and `day` is string"], id="wrong destination type"),
        pytest.param("id=year:month", ["month does not fit long"], id="a transform that does not fit"),
        pytest.param("id=tens:extract[2]", ["extract needs a string"], id="extract of a number"),
        pytest.param("id=id:identity", ["a column cannot depend on itself"], id="on itself"),
        pytest.param("inner=id:identity", ["`inner` is struct"], id="a struct"),
        pytest.param(
            "x=day:identity,id=year:hour,nonsense",
            ["there is no column `x`", "hour does not fit long", "`nonsense` is not of the form"],
            id="all at once",
        ),
    ],
)
def test_every_problem_is_named_when_the_table_is_made(lake: Lakehouse, text: str, problems: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        create_table(lake.catalog, "t", SCHEMA, column_dependencies=text)
    for problem in problems:
        assert problem in caught.value.message
    assert caught.value.place == "table t, columnDependencies"
    assert not lake.catalog.table_exists(("default", "t"))


def test_a_day_may_be_a_date_or_a_number() -> None:
    assert check_dependencies("ts=on:day,ts=year:day", SCHEMA, place="") == (
        Dependency("ts", "on", "day"),
        Dependency("ts", "year", "day"),
    )


ALL = parse_dependencies("date=day:extract[2],ts=year:year,id=bucket:bucket[8],id=tens:truncate[10],ts=on:day")

BUCKET = applied("bucket[8]", 17)


@pytest.mark.parametrize(
    ("given_", "implied"),
    [
        pytest.param(p.EqualTo("date", "09-12-2019"), p.EqualTo("day", "09"), id="the seed's own example"),
        pytest.param(p.In("date", ["09-1", "09-2"]), p.EqualTo("day", "09"), id="many to one"),
        pytest.param(p.IsNull("date"), p.IsNull("day"), id="null"),
        pytest.param(p.StartsWith("date", "0"), p.StartsWith("day", "0"), id="a short prefix"),
        pytest.param(p.StartsWith("date", "09-1"), p.EqualTo("day", "09"), id="a long prefix"),
        pytest.param(p.EqualTo("id", 17), p.And(p.EqualTo("bucket", BUCKET), p.EqualTo("tens", 10)), id="two at once"),
        pytest.param(p.GreaterThan("id", 17), p.And(p.NotNull("bucket"), p.GreaterThanOrEqual("tens", 10)), id="order"),
        pytest.param(p.Not(p.LessThan("date", "09")), p.GreaterThanOrEqual("day", "09"), id="not"),
        pytest.param(p.Or(p.EqualTo("date", "09-"), p.EqualTo("year", 1)), p.TRUE, id="or with another column"),
        pytest.param(
            p.Or(p.EqualTo("date", "09-"), p.EqualTo("date", "10-")),
            p.Or(p.EqualTo("day", "09"), p.EqualTo("day", "10")),
            id="or",
        ),
        pytest.param(p.EqualTo("year", 1), p.TRUE, id="a destination says nothing of its source"),
    ],
)
def test_what_a_predicate_implies(given_: Any, implied: Any) -> None:
    assert infer(given_, ALL, SCHEMA) == implied


def test_chains_of_dependencies() -> None:
    chain = parse_dependencies("date=day:extract[4],day=name:extract[2]")
    schema = Schema(*(NestedField(n, name, StringType()) for n, name in enumerate(("date", "day", "name"), 1)))
    implied = p.And(p.EqualTo("day", "09-1"), p.EqualTo("name", "09"))
    assert infer(p.EqualTo("date", "09-12-2019"), chain, schema) == implied


SOURCES = ("date", "ts", "id")


def rows() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "date": st.none() | st.text("01-9\u00e9", max_size=5),
            "ts": st.none() | st.integers(-(10**15), 10**15),
            "id": st.none() | st.integers(-50, 50),
        }
    ).map(with_destinations)


def with_destinations(row: dict[str, Any]) -> dict[str, Any]:
    for dependency in ALL:
        kind = SCHEMA.find_field(dependency.source).field_type
        row[dependency.destination] = dependency_transform(dependency).transform(kind)(row[dependency.source])
    return row


def spelled(column: str, value: Any) -> Any:
    if column == "ts":
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)).isoformat()
    return value


def holds(expression: Any, row: dict[str, Any]) -> bool | None:
    """SQL's truth of an expression for a row of stored values."""
    kind = type(expression).__name__
    if kind in ("And", "Or"):
        both = (holds(expression.left, row), holds(expression.right, row))
        decided = kind == "Or"
        return decided if decided in both else None if None in both else not decided
    if kind == "Not":
        inner = holds(expression.child, row)
        return None if inner is None else not inner
    if kind == "AlwaysTrue":
        return True
    column = expression.term.name
    there, field = row[column], SCHEMA.find_field(column)
    if kind in ("IsNull", "NotNull"):
        return (there is None) == (kind == "IsNull")
    if there is None:
        return None
    if kind == "In":
        return there in {each.to(field.field_type).value for each in expression.literals}
    wanted = expression.literal.to(field.field_type).value
    return bool(
        {
            "EqualTo": there == wanted,
            "NotEqualTo": there != wanted,
            "LessThan": kind == "LessThan" and there < wanted,
            "LessThanOrEqual": kind == "LessThanOrEqual" and there <= wanted,
            "GreaterThan": kind == "GreaterThan" and there > wanted,
            "GreaterThanOrEqual": kind == "GreaterThanOrEqual" and there >= wanted,
            "StartsWith": kind == "StartsWith" and there.startswith(wanted),
        }[kind]
    )


@st.composite
def predicates(draw: Any, depth: int = 2) -> Any:
    kind = draw(st.sampled_from(["leaf", "leaf", "and", "or", "not"])) if depth else "leaf"
    if kind in ("and", "or"):
        return (p.And if kind == "and" else p.Or)(draw(predicates(depth - 1)), draw(predicates(depth - 1)))
    if kind == "not":
        return p.Not(draw(predicates(depth - 1)))
    row = draw(rows().filter(lambda each: all(each[name] is not None for name in SOURCES)))
    column = draw(st.sampled_from(SOURCES))
    value = spelled(column, row[column])
    made = draw(
        st.sampled_from(
            [
                p.EqualTo,
                p.NotEqualTo,
                p.LessThan,
                p.LessThanOrEqual,
                p.GreaterThan,
                p.GreaterThanOrEqual,
                p.IsNull,
                p.NotNull,
                p.In,
            ]
        )
    )
    if made in (p.IsNull, p.NotNull):
        return made(column)
    return (
        made(column, [value, value, spelled(column, draw(rows())[column] or row[column])])
        if made is p.In
        else made(column, value)
    )


@settings(max_examples=100)
@given(predicates(), st.lists(rows(), min_size=1, max_size=8))
def test_every_row_that_matches_also_matches_what_is_inferred(predicate: Any, found: list[dict[str, Any]]) -> None:
    assert_inferred_of_all(predicate, found)


@pytest.mark.slow
@settings(max_examples=400)
@given(predicates(), st.lists(rows(), min_size=1, max_size=8))
def test_more_rows_that_match_also_match_what_is_inferred(predicate: Any, found: list[dict[str, Any]]) -> None:
    assert_inferred_of_all(predicate, found)


def assert_inferred_of_all(predicate: Any, found: list[dict[str, Any]]) -> None:
    """No row that matches the predicate is left out by what follows from it."""
    inferred = infer(predicate, ALL, SCHEMA)
    for row in found:
        if holds(predicate, row):
            assert holds(inferred, row) is True, (predicate, inferred, row)


def _may_hold(tens: int, row_filter: Any, value: int) -> bool:
    """Whether the partition has a row that matches: then and only then it should be kept."""
    return any(holds_number(row_filter, number, value) for number in range(tens, tens + 10))


def holds_number(row_filter: Any, number: int, value: int) -> bool:
    kind = type(row_filter).__name__
    return {"EqualTo": number == value, "LessThan": number < value, "GreaterThanOrEqual": number >= value}[kind]


def test_pruned_and_unpruned_scans_give_the_same_rows(lake: Lakehouse) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "tens", LongType()))
    by = [PartitionBy("tens")]
    table = create_table(lake.catalog, "t", schema, partition_by=by, column_dependencies="id=tens:truncate[10]")
    table = insert(table, [{"id": n, "tens": n - n % 10} for n in range(-50, 50)])
    r = random.Random(7)
    for _ in range(100):
        value = r.randrange(-60, 60)
        row_filter = r.choice([p.EqualTo, p.LessThan, p.GreaterThanOrEqual])("id", value)
        found = plan(table, row_filter)
        kept = {part[0] for part in found.partitions()}
        every = {row["tens"] for row in table.scan(row_filter=row_filter).to_arrow().to_pylist()}
        assert every <= kept
        assert all(_may_hold(part, row_filter, value) for part in kept)
    assert plan(table, p.EqualTo("id", 17)).partitions() == [(10,)]
    assert str(plan(table, p.EqualTo("id", 17)).inferred) == str(p.EqualTo("tens", 10))


def test_a_column_that_a_dependency_names_cannot_be_dropped(lake: Lakehouse) -> None:
    table = create_table(lake.catalog, "t", SCHEMA, column_dependencies="date=day:extract[2]")
    with pytest.raises(InvalidInput, match="part of the column dependency `date=day:extract"):
        alter_schema(table, [DropColumn("day")])
