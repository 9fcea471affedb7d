"""What is said of a whole file is never contradicted by one of its rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import pytest
from filter_cases import TRANSFORMS, Case, cases, truth
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from lakeproof.filters import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Opaque,
    Or,
    StartsWith,
    applied,
    matches,
    may_match_file,
    may_match_partition,
    must_match_file,
    negated,
)
from lakeproof.format import Bounds, DataFile, DeleteFile, PartitionField, TableShape

MANY = settings(max_examples=5 * settings().max_examples)


@MANY
@given(cases())
def test_a_row_matches_where_sql_says_true(case: Case) -> None:
    for row in case.rows:
        said = truth(case.predicate, row, case.shape.columns)
        assert matches(case.expression, row, case.shape.columns) == (said is True)
        if None not in row:
            denied = matches(negated(case.expression), row, case.shape.columns)
            assert denied == (truth(case.predicate, row, case.shape.columns) is False)


@MANY
@given(cases())
def test_cannot_match_is_never_said_of_a_file_with_a_matching_row(case: Case) -> None:
    hit = any(truth(case.predicate, row, case.shape.columns) is True for row in case.rows)
    by_file = may_match_file(case.expression, case.file, case.shape)
    by_partition = may_match_partition(case.expression, case.file, case.shape)
    event(f"hit {hit}, file {by_file}, partition {by_partition}")
    assert by_file or not hit
    assert by_partition or not hit
    assert by_partition or not by_file, "bounds can only narrow what the partition allows"


@MANY
@given(cases())
def test_must_match_is_never_said_of_a_file_with_another_row(case: Case) -> None:
    every = all(truth(case.predicate, row, case.shape.columns) is True for row in case.rows)
    certain = must_match_file(case.expression, case.file, case.shape)
    event(f"every {every}, certain {certain}")
    assert every or not certain


@given(cases())
def test_a_delete_file_is_asked_by_its_partition_alone(case: Case) -> None:
    delete = DeleteFile("delete", partition=case.file.partition, spec_id=case.file.spec_id)
    expected = may_match_partition(case.expression, case.file, case.shape)
    assert may_match_partition(case.expression, delete, case.shape) == expected


@given(cases())
def test_a_spec_that_nobody_knows_narrows_nothing(case: Case) -> None:
    foreign = DeleteFile("delete", partition=case.file.partition, spec_id=9)
    everywhere = DeleteFile("delete")
    assert may_match_partition(case.expression, foreign, case.shape) == may_match_partition(
        case.expression, everywhere, case.shape
    )


DOMAINS: dict[str, list[Any]] = {
    "int": list(range(-9, 10)),
    "str": ["".join(letters) for size in range(4) for letters in product("abz", repeat=size)],
    "date": [date(1969, 12, 30) + timedelta(days=step) for step in (0, 1, 2, 3, 20, 33, 365, 400, 800)],
    "datetime": [
        datetime(1969, 12, 31, 22, 30) + timedelta(minutes=m) for m in (0, 29, 31, 89, 91, 1500, 50_000, 600_000)
    ],
}


@pytest.mark.parametrize(
    ("kind", "transform"), [(kind, each) for kind in DOMAINS for each in TRANSFORMS[kind]], ids=lambda word: word
)
def test_no_comparison_misses_a_value_of_a_partition(kind: str, transform: str) -> None:
    """Every value of a small domain, compared with every other in every way."""
    for value in DOMAINS[kind]:
        where = by_partition(transform, applied(transform, value))
        for literal, comparison in product(DOMAINS[kind], K.values()):
            leaf = comparison(literal)
            assert may_match_file(leaf, *where) or not matches(leaf, (value,), ("k",)), (value, leaf)


# ---------------------------------------------------------------- the answers are not just "perhaps"


def by_bounds(**known: Any) -> tuple[DataFile, TableShape]:
    """A file of an unpartitioned table with bounds for column k."""
    return DataFile("f", bounds=(Bounds("k", **known),)), TableShape(("k",))


def by_partition(transform: str, value: Any) -> tuple[DataFile, TableShape]:
    """A file of a table partitioned by k."""
    return DataFile("f", partition=(value,)), TableShape(("k",), ((PartitionField("k", transform),),))


K = {op: partial(Compare, "k", op) for op in ("=", "!=", "<", "<=", ">", ">=")}


@pytest.mark.parametrize(
    ("expression", "where", "expected"),
    [
        pytest.param(K["="](5), by_bounds(lower=1, upper=4), False, id="above the upper bound"),
        pytest.param(K["="](4), by_bounds(lower=1, upper=4), True, id="on the upper bound"),
        pytest.param(K[">"](4), by_bounds(lower=1, upper=4), False, id="nothing is greater than the upper bound"),
        pytest.param(K[">="](4), by_bounds(lower=1, upper=4), True, id="but the upper bound is not smaller"),
        pytest.param(K["<"](1), by_bounds(lower=1, upper=4), False, id="nothing is smaller than the lower bound"),
        pytest.param(K["="](5), by_bounds(lower=1), True, id="no upper bound, no answer"),
        pytest.param(K[">"](4.0), by_bounds(lower=1.0, upper=4.0), True, id="NaN may be there, and is greater"),
        pytest.param(K[">"](4.0), by_bounds(lower=1.0, upper=4.0, has_nans=False), False, id="no NaN, then no"),
        pytest.param(K["="](4), by_bounds(lower=1, upper=4, has_values=False), False, id="only nulls equal nothing"),
        pytest.param(IsNull("k"), by_bounds(has_nulls=False), False, id="no null is there"),
        pytest.param(IsNull("k", negative=True), by_bounds(has_values=False), False, id="only nulls are there"),
        pytest.param(StartsWith("k", "b"), by_bounds(lower="a", upper="az"), False, id="prefix beyond the bounds"),
        pytest.param(StartsWith("k", "aq"), by_bounds(lower="a", upper="az"), True, id="prefix inside the bounds"),
        pytest.param(StartsWith("k", "ab"), by_bounds(lower="b"), False, id="a truncated lower bound excludes"),
        pytest.param(In("k", (0, 9)), by_bounds(lower=1, upper=4), False, id="no listed value is inside"),
        pytest.param(K["="](5), by_partition("identity", 4), False, id="another partition"),
        pytest.param(K["="](5), by_partition("bucket[4]", 0), False, id="another bucket"),
        pytest.param(K["<"](5), by_partition("bucket[4]", 0), True, id="buckets know no order"),
        pytest.param(K["<"](4), by_partition("truncate[4]", 8), False, id="a later range"),
        pytest.param(K[">="](11), by_partition("truncate[4]", 8), True, id="the last value of the range"),
        pytest.param(K["="](date(2020, 3, 1)), by_partition("month", 601), False, id="another month"),
        pytest.param(K["<"](date(2020, 3, 1)), by_partition("year", 51), False, id="a later year"),
        pytest.param(IsNull("k"), by_partition("day", 3), False, id="a partition of a value holds no null"),
        pytest.param(K["="](1), by_partition("identity", None), False, id="the null partition holds nothing else"),
        pytest.param(StartsWith("k", "b"), by_partition("truncate[2]", "ab"), False, id="another prefix"),
        pytest.param(StartsWith("k", "abc"), by_partition("truncate[2]", "ab"), True, id="a longer prefix"),
        pytest.param(K["="](1), by_partition("void", None), True, id="void says nothing"),
        pytest.param(Opaque("f(k)"), by_bounds(lower=1, upper=4), True, id="an opaque part may match"),
        pytest.param(NEVER, by_bounds(), False, id="never"),
    ],
)
def test_may_match(expression: Expression, where: tuple[DataFile, TableShape], expected: bool) -> None:
    assert may_match_file(expression, *where) is expected


@pytest.mark.parametrize(
    ("expression", "where", "expected"),
    [
        pytest.param(K["<"](5), by_bounds(lower=1, upper=4, has_nulls=False), True, id="all are smaller"),
        pytest.param(K["<"](5), by_bounds(lower=1, upper=4), False, id="a null may be there"),
        pytest.param(K["<"](5.0), by_bounds(lower=1.0, upper=4.0, has_nulls=False), False, id="a NaN may be there"),
        pytest.param(K["="](4), by_bounds(lower=4, upper=4, has_nulls=False), False, id="bounds may be wider"),
        pytest.param(K["="](4), by_partition("identity", 4), True, id="a partition value is exact"),
        pytest.param(K["="](4), by_partition("bucket[4]", 0), False, id="a bucket is not"),
        pytest.param(K["="](None), by_bounds(lower=1, upper=4, has_nulls=False), False, id="nothing equals null"),
        pytest.param(K["="](None), by_partition("identity", 4), False, id="no partition equals null"),
        pytest.param(In("k", (1, None)), by_partition("identity", 4), False, id="a listed null matches nothing"),
        pytest.param(In("k", (4, None)), by_partition("identity", 4), True, id="a listed null beside the value"),
        pytest.param(IsNull("k"), by_partition("identity", None), True, id="the null partition is null"),
        pytest.param(Or((K["="](1), K["="](4))), by_partition("identity", 4), True, id="one part is enough"),
        pytest.param(And((K["="](4), Opaque("f(k)"))), by_partition("identity", 4), False, id="opaque: not certain"),
        pytest.param(ALWAYS, by_bounds(), True, id="always"),
        pytest.param(NEVER, by_bounds(), False, id="never"),
    ],
)
def test_must_match(expression: Expression, where: tuple[DataFile, TableShape], expected: bool) -> None:
    assert must_match_file(expression, *where) is expected


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        pytest.param(K["="]("2020-03-01"), by_bounds(lower=date(2020, 1, 1), upper=date(2020, 2, 1)), id="bounds"),
        pytest.param(K["="]("2020-03-01"), by_partition("identity", date(2020, 3, 1)), id="an identity partition"),
        pytest.param(In("k", ("5", "6")), by_partition("identity", 5), id="a list of strings for an integer"),
        pytest.param(K["="](datetime(2020, 3, 1)), by_partition("identity", date(2020, 3, 1)), id="date and timestamp"),
        pytest.param(StartsWith("k", "2020"), by_partition("identity", date(2020, 3, 1)), id="LIKE on a date"),
        pytest.param(K["="]("2020-03-01"), by_partition("day", 18322), id="a day"),
        pytest.param(K[">"](Decimal("14.5")), by_partition("truncate[10]", 10), id="decimals truncate otherwise"),
        pytest.param(K["="](0.1), by_partition("identity", Decimal("0.10")), id="a double for a decimal"),
        pytest.param(K["="](0.1), by_bounds(lower=Decimal("0.10"), upper=Decimal("0.10")), id="also by its bounds"),
        pytest.param(
            K["="](datetime(2020, 3, 1)),
            by_partition("identity", datetime(2020, 3, 1, tzinfo=UTC)),
            id="a timestamp without a time zone for one with",
        ),
        pytest.param(K["<"](16), by_partition("truncate[10]", Decimal("15.00")), id="an integer for a decimal"),
        pytest.param(K["<"](Decimal(16)), by_partition("truncate[10]", Decimal("15.00")), id="another scale"),
    ],
)
def test_a_literal_of_another_type_excludes_nothing(expression: Expression, where: tuple[DataFile, TableShape]) -> None:
    """Spark casts it before it compares; here nobody can tell what it becomes."""
    assert may_match_file(expression, *where)
    assert not must_match_file(negated(expression), *where)


@example(transform="zorder")
@example(transform="bucket")
@example(transform="bucket[0]")
@given(transform=st.text("abc[]1"))
def test_a_transform_that_nobody_knows_narrows_nothing(transform: str) -> None:
    assert may_match_file(Compare("k", "=", 5), *by_partition(transform, 4))


EIGHT_UTC = datetime(2020, 1, 6, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "value", "literal"),
    [
        pytest.param(PartitionField("c", "bucket[97]", "int"), 5, "5", id="a string beside an int"),
        pytest.param(PartitionField("c", "bucket[97]", "long"), 5, Decimal("5.00"), id="a decimal beside a long"),
        pytest.param(PartitionField("c", "bucket[97]", "string"), "5", 5, id="an int beside a string"),
        pytest.param(PartitionField("c", "bucket[97]", "decimal(9, 2)"), Decimal("5.00"), 5, id="an int, a decimal"),
        pytest.param(
            PartitionField("c", "bucket[97]", "decimal(9, 2)"), Decimal("5.00"), Decimal(5), id="scales differ"
        ),
        pytest.param(PartitionField("c", "bucket[97]", "date"), date(2020, 1, 6), "2020-01-06", id="a string, a date"),
        pytest.param(
            PartitionField("c", "bucket[97]", "timestamptz"), EIGHT_UTC, datetime(2020, 1, 6, 9), id="another time zone"
        ),
        pytest.param(PartitionField("c", "hour", "timestamptz"), EIGHT_UTC, datetime(2020, 1, 6, 9), id="another hour"),
    ],
)
def test_a_literal_of_another_type_excludes_no_partition(field: PartitionField, value: Any, literal: Any) -> None:
    """SQL casts it to what the row has; its own hash or ordinal leads elsewhere."""
    shape = TableShape(("c",), ((field,),))
    file = DataFile("f", partition=(applied(field.transform, value),))
    assert applied(field.transform, literal) != file.partition[0], "else the case shows nothing"
    for predicate in (Compare("c", "=", literal), In("c", (literal,))):
        assert may_match_partition(predicate, file, shape)
        assert may_match_file(predicate, file, shape)
        assert matches(predicate, (value,), ("c",))


def test_a_literal_of_the_columns_type_still_excludes() -> None:
    pairs: list[tuple[str, Any, Any]] = [
        ("int", 5, 6),
        ("string", "a", "b"),
        ("date", date(2020, 1, 6), date(2020, 1, 7)),
    ]
    pairs += [
        ("decimal(9, 2)", Decimal("5.00"), Decimal("7.00")),
        ("timestamptz", EIGHT_UTC, EIGHT_UTC.replace(hour=9)),
    ]
    for kind, value, another in pairs:
        shape = TableShape(("c",), ((PartitionField("c", "bucket[97]", kind),),))
        file = DataFile("f", partition=(applied("bucket[97]", value),))
        assert not may_match_partition(Compare("c", "=", another), file, shape), kind
        assert may_match_partition(Compare("c", "=", value), file, shape), kind


@pytest.mark.parametrize("operator", ["=", "<", ">="])
def test_a_row_whose_value_does_not_compare_may_match(operator: str) -> None:
    """The comparison is Spark's to make: `5 < '17'` is true there, and `'5' < '17'` is not."""
    assert matches(Compare("c", operator, "17"), (5,), ("c",))
    assert matches(Compare("c", operator, 17), ("5",), ("c",))
    assert matches(Compare("c", operator, date(2020, 1, 1)), (EIGHT_UTC,), ("c",))
    assert not matches(Compare("c", operator, "17"), (None,), ("c",))
