"""Predicates are values: simplified without changing their meaning, spelled as the table spells its columns."""

from __future__ import annotations

from datetime import date
from itertools import combinations
from typing import Any

import pytest
from filter_cases import Case, cases, truth
from hypothesis import given
from hypothesis import strategies as st

from lakeproof.errors import InvalidInput
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
    all_of,
    any_of,
    bound,
    columns_of,
    matches,
    negated,
    worded,
)

A, B = Compare("a", "=", 1), Compare("b", ">", 2)
DIFFERENT: tuple[Expression, ...] = (
    ALWAYS,
    NEVER,
    A,
    And((A, B)),
    Or((A, B)),
    And(()),
    Or(()),
    In("a", (1,)),
    IsNull("a"),
    StartsWith("a", "1"),
    Opaque("a"),
)


def test_different_predicates_are_different_values() -> None:
    assert [pair for pair in combinations(DIFFERENT, 2) if pair[0] == pair[1]] == []
    assert len(set(DIFFERENT)) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(all_of([]), ALWAYS, id="no condition is always true"),
        pytest.param(any_of([]), NEVER, id="no alternative is never true"),
        pytest.param(all_of([A, NEVER]), NEVER, id="never wins a conjunction"),
        pytest.param(any_of([A, ALWAYS]), ALWAYS, id="always wins a disjunction"),
        pytest.param(all_of([ALWAYS, A]), A, id="always adds nothing to a conjunction"),
        pytest.param(any_of([NEVER, A]), A, id="never adds nothing to a disjunction"),
        pytest.param(all_of([A, And((B, A))]), And((A, B)), id="a nested conjunction is flat, each part once"),
        pytest.param(any_of([Or((A, B)), B]), Or((A, B)), id="a nested disjunction too"),
        pytest.param(any_of([And((A, B)), A]), Or((And((A, B)), A)), id="a conjunction inside stays"),
    ],
)
def test_simplified(made: Expression, expected: Expression) -> None:
    assert made == expected


@given(case=cases(), data=st.data())
def test_simplifying_keeps_the_meaning(case: Case, data: st.DataObject) -> None:
    several = [case.expression, *data.draw(st.lists(st.sampled_from(DIFFERENT[:2])))]
    for row in case.rows:
        each = [matches(part, row, case.shape.columns) for part in several]
        assert matches(all_of(several), row, case.shape.columns) == all(each)
        assert matches(any_of(several), row, case.shape.columns) == any(each)


@given(cases())
def test_negating_twice_changes_nothing(case: Case) -> None:
    assert negated(negated(case.expression)) == case.expression


@given(cases())
def test_binding_spells_the_columns_and_keeps_the_meaning(case: Case) -> None:
    upper = tuple(name.upper() for name in case.shape.columns)
    spelled = bound(case.expression, upper, case_sensitive=False)
    assert set(columns_of(spelled)) <= set(upper)
    for row in case.rows:
        said = truth(case.predicate, row, case.shape.columns)
        assert matches(spelled, row, upper) == (said is True)


def test_columns_are_named_in_order_of_appearance() -> None:
    assert columns_of(And((B, Or((A, IsNull("c"))), Opaque("f(d)"), Compare("b", "<", 9)))) == ("b", "a", "c")


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        bound(Compare("Color", "=", "blue"), ("name", "color"))
    assert caught.value.message == "Cannot find field 'Color' in the table"
    assert caught.value.hint == "the columns are name, color; names are case sensitive"
    assert bound(Compare("Color", "=", "blue"), ("name", "color"), case_sensitive=False).column == "color"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (ALWAYS, "true"),
        (NEVER, "false"),
        (Compare("k", "!=", None), "k != NULL"),
        (Compare("k", "=", True), "k = true"),
        (Compare("k", ">=", 1.5), "k >= 1.5"),
        (Compare("day", "<", date(2024, 2, 1)), "day < '2024-02-01'"),
        (Compare("name", "=", "O'Hara"), "name = 'O''Hara'"),
        (In("k", (1, 2), negative=True), "k NOT IN (1, 2)"),
        (IsNull("k", negative=True), "k IS NOT NULL"),
        (StartsWith("name", "ja"), "name LIKE 'ja%'"),
        (Or((And((A, B)), IsNull("c"))), "(a = 1 AND b > 2) OR c IS NULL"),
        (And((Or((A, B)), Opaque("f(c)"))), "(a = 1 OR b > 2) AND f(c)"),
        (negated(Opaque("f(c)")), "NOT (f(c))"),
    ],
)
def test_worded(expression: Any, text: str) -> None:
    assert worded(expression) == text
