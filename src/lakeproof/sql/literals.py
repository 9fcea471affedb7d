"""Literals as constants of their kinds, and comparisons whose two sides have one kind."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from lakeproof.sql.expressions import NULL, Call, Constant, Node
from lakeproof.sql.kinds import base, comparable, converted, kind_of


def comparison_of(operator: str, one: Node, other: Node) -> Node | None:
    """A comparison whose sides have one kind, or `None` where SQL's cast is not known here."""
    if isinstance(other, Constant) and other.value is None:
        return Call("is null", (one,)) if operator == "<=>" else Constant(None, "boolean")
    if isinstance(one, Constant) and one.value is None:
        return Constant((operator == "<=>" and other == NULL) or None, "boolean")
    if isinstance(one, Constant) and isinstance(other, Constant):
        return Call(operator, (one, other)) if comparable(one.kind, other.kind) else None
    if one.kind in ("other", "free") or other.kind in ("other", "free"):
        both_free = one.kind == other.kind == "free"
        return Call(operator, (one, other)) if both_free else None
    if isinstance(other, Constant):
        value = converted(other.value, one.kind)
        if value is not None and (base(one.kind) != "double" or not isinstance(other.value, str)):
            return Call(operator, (one, Constant(value, one.kind)))
    return Call(operator, (one, other)) if comparable(one.kind, other.kind) else None


def constant_of(node: exp.Expr) -> Constant | None:
    """The constant that a literal is, dates and timestamps too."""
    if isinstance(node, exp.Paren):
        return constant_of(node.this)
    if isinstance(node, exp.Null):
        return NULL
    if isinstance(node, exp.Boolean):
        return Constant(bool(node.this), "boolean")
    if isinstance(node, exp.Neg):
        inner = constant_of(node.this)
        value = inner.value if inner else None
        number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        return Constant(-value, inner.kind) if inner and number else None  # type: ignore[operator]
    if isinstance(node, exp.Literal):
        return Constant(str(node.this), "string") if node.is_string else _number(str(node.this))
    if isinstance(node, exp.Cast | exp.TryCast):
        return _cast(node)
    return None


def _number(text: str) -> Constant:
    if text.isdecimal():
        return Constant(int(text), "int")
    if "e" in text.lower():
        return Constant(float(text), "double")
    value = Decimal(text)
    digits = max(0, -int(value.as_tuple().exponent))
    return Constant(value, f"decimal({max(len(value.as_tuple().digits), digits)},{digits})")


def _cast(node: exp.Cast) -> Constant | None:
    inner = constant_of(node.this)
    kind = kind_of(node.to.sql(dialect="spark"))
    if inner is None or kind == "other":
        return None
    if inner.value is None:
        return Constant(None, kind)
    value = converted(inner.value, kind)
    return None if value is None else Constant(value, kind)
