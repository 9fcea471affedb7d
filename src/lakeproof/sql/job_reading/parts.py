"""What a parsed part of a statement has besides what is looked at, and what kind of part it is."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from lakeproof.errors import InvalidInput
from lakeproof.sql.expressions import Constant
from lakeproof.sql.literals import constant_of

UNDERSTOOD: Mapping[type[exp.Expr], set[str]] = {
    exp.Insert: {"this", "expression", "overwrite", "partition", "by_name", "where", "source"},
    exp.Update: {"this", "expressions", "where", "from_", "order", "limit", "returning"},
    exp.Delete: {"this", "where", "using", "order", "limit", "returning"},
    exp.Merge: {"this", "using", "on", "whens"},
    exp.When: {"matched", "source", "then", "condition"},
    exp.TruncateTable: {"expressions"},
}
"""The parts of each kind of statement that are looked at here."""


def refuse_more(node: exp.Expr) -> None:
    """No part of a statement may be left unread."""
    whens = node.args["whens"].expressions if isinstance(node, exp.Merge) and node.args.get("whens") else ()
    for one in (node, *whens):
        known = UNDERSTOOD.get(type(one), set(one.args))
        odd = [key for key, value in one.args.items() if value and key not in known]
        if odd or (isinstance(one, exp.TruncateTable) and len(one.expressions) != 1):
            said = odd[0].replace("_", " ").upper() if odd else "several tables"
            raise InvalidInput(f"{one.key.upper().removesuffix('TABLE')} with {said} is not understood")


def refuse_twice(names: list[str]) -> None:
    """No column may be named twice."""
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"The column {name!r} is named twice")


def static_partition(node: exp.Expr | None) -> dict[str, Constant]:
    """The columns of PARTITION (column = value, …) with their values."""
    found = {}
    for one in node.expressions if node else ():
        if not isinstance(one, exp.EQ):
            raise InvalidInput("A partition without a value is not understood", hint="give every column a value")
        value = constant_of(one.expression)
        if value is None:
            raise InvalidInput(f"PARTITION ({one.sql(dialect='spark')}): the value must be a literal")
        found[one.this.name] = value
    return found


def has_more(node: exp.Expr) -> bool:
    """Whether a condition has a part that is not looked at here."""
    known = {"this", "expression", "expressions", "low", "high", "query", "table", "db", "catalog", "negate", "to"}
    return any(value for key, value in node.args.items() if key not in known and not key.startswith("_"))


def aggregate_of(node: exp.Expr) -> tuple[str, exp.Expr | None]:
    """The aggregate that a selected expression is, and of what (`None`: of rows)."""
    if node.args.get("expressions"):  # of several columns
        return "", None
    if isinstance(node, exp.Count):
        inner = node.this
        if isinstance(inner, exp.Distinct):
            return ("count distinct", inner.expressions[0]) if len(inner.expressions) == 1 else ("", None)
        whole = isinstance(inner, exp.Star | exp.Literal)
        return "count", None if whole else inner
    for kind, name in ((exp.Sum, "sum"), (exp.Min, "min"), (exp.Max, "max")):
        if isinstance(node, kind):
            return name, node.this
    return "", None


VOLATILE = frozenset(
    (
        *("rand", "randn", "random", "uuid", "shuffle", "uniform", "monotonically_increasing_id", "input_file_name"),
        *("now", "curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "unix_timestamp"),
    )
)
"""Functions whose answer for the same row may be another one in the next run."""


def volatile_in(node: exp.Expr) -> list[str]:
    """The functions in this part that may answer otherwise in another run."""
    names = (one.name if isinstance(one, exp.Anonymous) else one.sql_name() for one in node.find_all(exp.Func))
    return [name for name in names if name.lower() in VOLATILE]
