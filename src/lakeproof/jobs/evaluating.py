"""Conditions and values computed on concrete rows, with SQL's three truth values: `None` is neither true nor false.

A node is turned into a function once. It is given the row of each relation, and the rows of each table for subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from lakeproof.errors import LakeproofError
from lakeproof.filters import COMPARISONS
from lakeproof.format import Row, Value
from lakeproof.sql.expressions import Call, Column, Constant, Node, Query, Subquery, Unknown

Bindings = Mapping[str, Row]
TableRows = Mapping[str, Sequence[Row]]
Computed = Callable[[Bindings, TableRows], Any]
Layout = Mapping[str, tuple[str, ...]]
"""The column names of each relation, in the order of its rows; those of hidden values come last."""


class Evaluator:
    """Makes functions of nodes. `hidden`: the relation and column that hold the value of an unknown part."""

    def __init__(
        self, layout: Layout, hidden: Mapping[Unknown, tuple[str, str]], tables: Mapping[str, tuple[str, ...]]
    ):
        self.layout, self.hidden, self.tables = dict(layout), hidden, tables

    def function(self, node: Node) -> Computed:
        """The function that computes this node."""
        match node:
            case Constant(value):
                return lambda rows, tables: value
            case Column(relation, name):
                return self._column(relation, name)
            case Unknown():
                return self._column(*self.hidden[node])
            case Subquery():
                return self._subquery(node)
            case Call():
                return _called(node.function, [self.function(part) for part in node.parts])

    def _column(self, relation: str, name: str) -> Computed:
        at = self.layout[relation].index(name)
        return lambda rows, tables: rows[relation][at]

    # ------------------------------------------------------------ subqueries

    def matching(self, query: Query) -> Callable[[Bindings, TableRows], list[dict[str, Row]]]:
        """The bindings of a query's rows that match, each with the rows around it."""
        self.layout[query.relation] = self.tables[query.table]
        where, name, table = self.function(query.where), query.relation, query.table

        def found(rows: Bindings, tables: TableRows) -> list[dict[str, Row]]:
            inner = ({**rows, name: row} for row in tables[table])
            return [each for each in inner if where(each, tables) is True]

        return found

    def answers(self, query: Query) -> Callable[[Bindings, TableRows], list[Row]]:
        """The rows that a query gives."""
        found = self.matching(query)
        outputs = [self.function(output) for output in query.outputs]

        def given(rows: Bindings, tables: TableRows) -> list[Row]:
            hit = found(rows, tables)
            if not query.aggregates:
                return [tuple(output(each, tables) for output in outputs) for each in hit]
            columns = [[output(each, tables) for each in hit] for output in outputs]
            constant = [
                output({**rows}, tables) if not name else None
                for output, name in zip(outputs, query.aggregates, strict=True)
            ]
            pairs = zip(query.aggregates, columns, constant, strict=True)
            return [tuple(aggregated(name, values) if name else fixed for name, values, fixed in pairs)]

        return given

    def _subquery(self, node: Subquery) -> Computed:
        if node.use == "exists":
            found = self.matching(node.query)
            return lambda rows, tables: bool(found(rows, tables))
        answers = self.answers(node.query)
        if node.use == "value":
            return lambda rows, tables: answers(rows, tables)[0][0]
        assert node.sought is not None
        sought = self.function(node.sought)
        return lambda rows, tables: _is_in(sought(rows, tables), [row[0] for row in answers(rows, tables)])


def aggregated(name: str, values: list[Any]) -> Value:
    """An aggregate of these values; NULL counts for nothing."""
    known = [value for value in values if value is not None]
    match name:
        case "count":
            return len(known)
        case "count distinct":
            return len(set(known))
        case "sum":
            return sum(known[1:], known[0]) if known else None
        case "min":
            return min(known) if known else None
        case "max":
            return max(known) if known else None
    raise LakeproofError(f"{name} is not an aggregate")


def _is_in(value: Any, options: list[Any]) -> bool | None:
    if not options:
        return False
    truths = [compare("=", value, option) for option in options]
    return True if True in truths else None if None in truths else False


def compare(name: str, left: Any, right: Any) -> bool | None:
    """SQL's comparison: NULL beside anything is neither true nor false."""
    if name == "<=>":
        return left is right if left is None or right is None else bool(compare("=", left, right))
    if left is None or right is None:
        return None
    if isinstance(left, date) and isinstance(right, date) and type(left) is not type(right):
        left, right = _moment(left), _moment(right)
    if isinstance(left, float) != isinstance(right, float):  # Spark compares a double with a decimal as doubles
        left, right = float(left), float(right)
    return bool(COMPARISONS[name](left, right))


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _called(name: str, parts: list[Computed]) -> Computed:
    if name in COMPARISONS or name == "<=>":
        left, right = parts
        return lambda rows, tables: compare(name, left(rows, tables), right(rows, tables))
    if name == "and":
        return lambda rows, tables: _both([part(rows, tables) for part in parts])
    if name == "or":
        return lambda rows, tables: _either([part(rows, tables) for part in parts])
    if name == "not":
        return lambda rows, tables: None if (truth := parts[0](rows, tables)) is None else not truth
    if name == "is null":
        return lambda rows, tables: parts[0](rows, tables) is None
    return lambda rows, tables: _applied(name, [part(rows, tables) for part in parts])


def _both(truths: list[Any]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _either(truths: list[Any]) -> bool | None:
    return True if True in truths else None if None in truths else False


def _applied(name: str, values: list[Any]) -> Any:
    """A function of values none of which may be NULL."""
    if None in values:
        return None
    match name:
        case "+":
            return values[0] + values[1]
        case "-":
            return values[0] - values[1]
        case "*":
            return values[0] * values[1]
        case "starts with":
            return values[0].startswith(values[1])
        case "lower":
            return values[0].lower()
        case "upper":
            return values[0].upper()
        case "length":
            return len(values[0])
        case "abs":
            return abs(values[0])
    raise LakeproofError(f"{name} is not a function that is known here")
