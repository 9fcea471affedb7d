"""Errors planted in the reading of statements and in the choice of first tables, one entry each.

The oracle must find every one; `directed.py` has for each the small file that shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from lakeproof.filters import ALWAYS, NEVER
from lakeproof.jobs import conflict_filters, evaluating, hidden, meaning, preparing, reading
from lakeproof.jobs.first_tables import classes, witnesses
from lakeproof.sql import expressions, literals, reading_jobs, resolving
from lakeproof.sql.expressions import Call, Constant

Plant = Callable[[pytest.MonkeyPatch], None]
PLANTED: dict[str, Plant] = {}


def planted(function: Plant) -> Plant:
    """Enter an error in the list under its own sentence."""
    PLANTED[(function.__doc__ or "").rstrip(".")] = function
    return function


def around(patch: pytest.MonkeyPatch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a function by one that is given the old one first."""
    old = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(old, *given, **named))


# ---------------------------------------------------------------- reading


@planted
def qualifier(patch: pytest.MonkeyPatch) -> None:
    """A qualifier is dropped."""

    def change(old: Any, self: resolving.Resolver, node: exp.Column, wanted: str = "") -> Any:
        scopes = self.scopes
        self.scopes = [[one for one in scope if node.name.lower() in one.columns][:1] for scope in scopes]
        try:
            return old(self, exp.column(node.name), wanted)
        except Exception:
            self.scopes = scopes
            return old(self, node, wanted)
        finally:
            self.scopes = scopes

    around(patch, resolving.Resolver, "column", change)


@planted
def negation(patch: pytest.MonkeyPatch) -> None:
    """NOT is lost."""

    def change(old: Any, self: Any, node: Any) -> Any:
        return old(self, node.this if isinstance(node, exp.Not) else node)

    around(patch, resolving.Resolver, "condition", change)


@planted
def not_like(patch: pytest.MonkeyPatch) -> None:
    """NOT LIKE is read as LIKE."""

    def change(old: Any, self: Any, node: Any) -> Any:
        if isinstance(node, exp.Like) and node.args.get("negate"):
            node = node.copy()
            node.set("negate", False)
        return old(self, node)

    around(patch, resolving.Resolver, "condition", change)


@planted
def null_comparison(patch: pytest.MonkeyPatch) -> None:
    """A comparison with NULL is false, so that NOT makes it true."""

    def change(old: Any, operator: str, one: Any, other: Any) -> Any:
        found = old(operator, one, other)
        return Constant(False, "boolean") if found == Constant(None, "boolean") else found

    around(patch, literals, "comparison_of", change)
    patch.setattr(resolving, "comparison_of", literals.comparison_of)


@planted
def not_of_null(patch: pytest.MonkeyPatch) -> None:
    """NOT of NULL is true."""

    def change(old: Any, name: str, parts: Any) -> Any:
        if name == "not":
            return lambda rows, tables: parts[0](rows, tables) is not True
        return old(name, parts)

    around(patch, evaluating, "_called", change)


@planted
def less_or_equal(patch: pytest.MonkeyPatch) -> None:
    """<= is read as <."""
    around(patch, resolving, "comparison_of", lambda old, op, one, other: old("<" if op == "<=" else op, one, other))


@planted
def either(patch: pytest.MonkeyPatch) -> None:
    """OR is read as AND."""
    patch.setattr(evaluating, "_either", evaluating._both)


@planted
def between(patch: pytest.MonkeyPatch) -> None:
    """BETWEEN loses its upper end."""

    def change(old: Any, self: Any, node: Any) -> Any:
        if isinstance(node, exp.Between):
            return self.compared(">=", node.this, node.args["low"])
        return old(self, node)

    around(patch, resolving.Resolver, "atom", change)


@planted
def simultaneous(patch: pytest.MonkeyPatch) -> None:
    """An assignment sees the values that the one before it wrote."""

    def change(old: Any, self: Any, row: Any, sets: Any, bound: Any, tables: Any) -> Any:
        for name, value in sets:
            row = old(self, row, [(name, value)], {**bound, "t": row}, tables)
        return row

    around(patch, meaning.StatementRun, "_set", change)


@planted
def clause_condition(patch: pytest.MonkeyPatch) -> None:
    """The condition of a MERGE clause is ignored."""
    around(patch, reading_jobs._Reader, "clause", lambda old, *given: replace(old(*given), condition=expressions.TRUE))


@planted
def on_condition(patch: pytest.MonkeyPatch) -> None:
    """Of MERGE's ON only the last condition is read."""

    def change(old: Any, self: Any, node: Any) -> Any:
        made = old(self, node)
        return replace(made, on=expressions.conjuncts(made.on)[-1])

    around(patch, reading_jobs._Reader, "merge", change)


@planted
def by_source(patch: pytest.MonkeyPatch) -> None:
    """NOT MATCHED BY SOURCE is ignored."""

    def change(old: Any, self: Any, when: str, *given: Any) -> Any:
        return None if when == "not matched by source" else old(self, when, *given)

    around(patch, meaning.StatementRun, "_first", change)


@planted
def matched_twice(patch: pytest.MonkeyPatch) -> None:
    """A target row may be matched by two source rows."""

    def change(old: Any, self: Any, *given: Any) -> None:
        old(self, *given)
        self.ambiguous = False

    around(patch, meaning.Compiled, "__init__", change)


@planted
def static_partition(patch: pytest.MonkeyPatch) -> None:
    """INSERT OVERWRITE of a partition replaces the whole table."""
    patch.setattr(meaning.StatementRun, "_replaced", lambda self, row, added: True)
    patch.setattr(meaning, "replaced_rows_filter", lambda made: ALWAYS)


@planted
def in_subquery(patch: pytest.MonkeyPatch) -> None:
    """NOT IN (SELECT …) does not mind NULL."""
    around(patch, evaluating, "_is_in", lambda old, value, options: bool(old(value, options)))


@planted
def correlation(patch: pytest.MonkeyPatch) -> None:
    """The correlation of a subquery is dropped."""

    def change(old: Any, self: Any, query: Any) -> Any:
        parts = [one for one in expressions.conjuncts(query.where) if _relations(one) <= {query.relation}]
        return old(self, replace(query, where=expressions.both(parts)))

    def _relations(node: Any) -> set[str]:
        return {column.relation for column in expressions.columns_in(node)}

    around(patch, evaluating.Evaluator, "matching", change)


@planted
def guard(patch: pytest.MonkeyPatch) -> None:
    """A subquery is taken as true."""

    def change(old: Any, self: Any, node: Any) -> Any:
        return lambda rows, tables: True

    around(patch, evaluating.Evaluator, "_subquery", change)


@planted
def counting(patch: pytest.MonkeyPatch) -> None:
    """count(*) is always one."""
    around(patch, meaning, "aggregated", lambda old, name, values: 1)


@planted
def isolation(patch: pytest.MonkeyPatch) -> None:
    """Every table is taken to be at snapshot isolation."""
    around(patch, reading, "_isolations", lambda old, properties, place: old({**properties, **_SNAPSHOT}, place))


_SNAPSHOT = {f"write.{word}.isolation-level": "snapshot" for word in ("delete", "update", "merge", "insert")}


@planted
def modes(patch: pytest.MonkeyPatch) -> None:
    """Every table is taken to be copy-on-write."""
    around(patch, reading, "_modes", lambda old, properties, place: old({}, place))


# ---------------------------------------------------------------- witnesses and first tables


@planted
def null_witness(patch: pytest.MonkeyPatch) -> None:
    """No first row has NULL."""
    around(
        patch,
        witnesses.Domain,
        "tried",
        lambda old, self: tuple(value for value in old(self) if value is not None) or old(self),
    )


@planted
def gaps(patch: pytest.MonkeyPatch) -> None:
    """No value lies between, before or behind constants."""
    around(
        patch, witnesses, "with_gaps", lambda old, values, kind, each: sorted(values) or old(values, kind, each=each)
    )


@planted
def unnamed(patch: pytest.MonkeyPatch) -> None:
    """No value is tried that no statement names."""

    def change(old: Any, self: Any, key: Any) -> Any:
        found = old(self, key)
        named = tuple(value for value in found.values if value in found.named)
        return found._replace(values=named) if found.read and named else found

    around(patch, witnesses.Witnesses, "domain", change)


@planted
def same_strings(patch: pytest.MonkeyPatch) -> None:
    """Columns of two names never hold the same string."""

    def change(old: Any, self: Any, key: Any) -> Any:
        found = old(self, key)
        own = tuple(
            f"{key[1]} {value}" if isinstance(value, str) and value not in found.named else value
            for value in found.values
        )
        return found._replace(values=own)

    around(patch, witnesses.Witnesses, "domain", change)


@planted
def null_of_a_source(patch: pytest.MonkeyPatch) -> None:
    """A source's column that no constant is compared with is never NULL."""

    def change(old: Any, self: Any, key: Any) -> Any:
        found = old(self, key)
        return found._replace(read=False) if key[0].startswith("#") and not found.named else found

    around(patch, witnesses.Witnesses, "domain", change)


@planted
def named(patch: pytest.MonkeyPatch) -> None:
    """Of the constants only the smallest is tried."""
    around(patch, witnesses, "of_kind", lambda old, constants, kind: old(constants, kind)[:1])


@planted
def one_class(patch: pytest.MonkeyPatch) -> None:
    """Rows are told apart by what they look like now, not by what becomes of them."""
    patch.setattr(classes, "DEPTH", 0)
    around(patch, classes.Look, "of", lambda old, self, row, depth: old(self, row, 0))


@planted
def single_rows(patch: pytest.MonkeyPatch) -> None:
    """No first table has two rows."""
    patch.setattr(preparing, "MOST_FIRST_ROWS", 1)


@planted
def source_row(patch: pytest.MonkeyPatch) -> None:
    """A free source is tried with its first row only."""

    def change(old: Any, *given: Any) -> Any:
        yield next(old(*given))

    around(patch, preparing, "_source_rows", change)


@planted
def filter_of_the_unknown(patch: pytest.MonkeyPatch) -> None:
    """A filter takes what it cannot know as false."""

    def change(old: Any, node: Any, relation: str, *, positive: bool = True) -> Any:
        simple = isinstance(node, Call | Constant | expressions.Column)
        return old(node, relation, positive=positive) if simple else NEVER

    around(patch, conflict_filters, "as_filter", change)
    patch.setattr(meaning, "as_filter", conflict_filters.as_filter)


@planted
def new_hidden(patch: pytest.MonkeyPatch) -> None:
    """A condition that is not known is true of every row."""
    patch.setattr(hidden, "TRUTHS", (True,))
    patch.setattr(classes, "TRUTHS", (True,))
