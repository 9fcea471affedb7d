"""Spark's pushed filters as Iceberg predicates: never stronger than the filter, so that pruning loses no row.

One call per conjunct brings the whole tree as JSON. What cannot be said in a predicate becomes «true»; below a NOT even
that would be wrong, so there the whole part is given up.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from lakeproof.iceberg import predicates as p
from lakeproof.spark.gateway import CATALYST, Gateway

_EPOCH = dt.datetime(1970, 1, 1)
_FLIPPED = {
    "EqualTo": "EqualTo",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}
_Maker = Callable[..., p.BooleanExpression]  # pydantic hides the real constructors from the type checker
_EQUAL: _Maker = p.EqualTo
_IN: _Maker = p.In
_STARTS_WITH: _Maker = p.StartsWith
_IS_NULL: _Maker = p.IsNull
_NOT_NULL: _Maker = p.NotNull
_IS_NAN: _Maker = p.IsNaN
_COMPARISONS: dict[str, _Maker] = {
    "EqualTo": p.EqualTo,
    "GreaterThan": p.GreaterThan,
    "GreaterThanOrEqual": p.GreaterThanOrEqual,
    "LessThan": p.LessThan,
    "LessThanOrEqual": p.LessThanOrEqual,
}
_SEPARATOR = "\x00\x01\x00"


class Unsaid(Exception):
    """This part of the filter has no predicate."""


class Node:
    """One node of a Catalyst tree, able to ask the JVM for what its JSON leaves out."""

    def __init__(self, fields: Mapping[str, Any], children: list[Node], expression: Any, path: tuple[int, ...]) -> None:
        self.fields, self.children, self.expression, self.path = fields, children, expression, path

    @property
    def kind(self) -> str:
        """The class without its package."""
        return str(self.fields["class"]).rsplit(".", 1)[1]

    def in_jvm(self) -> Any:
        """The same node as the JVM holds it."""
        found = self.expression
        for number in self.path:
            found = found.children().apply(number)
        return found


def predicate_of(expressions: Iterable[Any], columns: Mapping[str, str]) -> p.BooleanExpression:
    """The conjunction of JVM expressions, as a predicate on the table's columns.

    `columns` maps the scan's (dotted) names to those of the metadata; what is not in it (a hidden column, a field of
    `_metadata`) says nothing.
    """
    found: p.BooleanExpression = p.TRUE
    for expression in expressions:
        tree = node_of(json.loads(expression.toJSON()), expression)
        found = p.And(found, _Reader(columns).weakened(tree))
    return found


def conjunction_of(gateway: Gateway, expressions: Any, columns: Mapping[str, str]) -> p.BooleanExpression:
    """The same of a Scala Seq of expressions, which comes over as one tree: each call to the JVM has its price."""
    together = gateway.module(f"{CATALYST}expressions.CreateArray").apply(expressions)
    tree = node_of(json.loads(together.toJSON()), together)
    found: p.BooleanExpression = p.TRUE
    for child in tree.children:
        found = p.And(found, _Reader(columns).weakened(child))
    return found


def node_of(listed: list[Mapping[str, Any]], expression: Any = None) -> Node:
    """The tree behind Catalyst's JSON, which lists nodes in pre-order with their numbers of children."""
    rest = iter(listed)

    def read(path: tuple[int, ...]) -> Node:
        fields = next(rest)
        children = [read((*path, number)) for number in range(fields["num-children"])]
        return Node(fields, children, expression, path)

    return read(())


class _Reader:
    """Reads trees over one set of columns."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = columns

    def weakened(self, node: Node) -> p.BooleanExpression:
        """A predicate that holds wherever the node does."""
        if node.kind == "And":
            return p.And(*(self.weakened(child) for child in node.children))
        if node.kind == "Or":
            return p.Or(*(self.weakened(child) for child in node.children))
        try:
            return self.exact(node)
        except Unsaid:
            return p.TRUE

    def exact(self, node: Node) -> p.BooleanExpression:
        """A predicate that holds wherever the node does, and not where its negation does."""
        kind, children = node.kind, node.children
        if kind in ("And", "Or"):
            parts = [self.exact(child) for child in children]
            return p.And(*parts) if kind == "And" else p.Or(*parts)
        if kind == "Not":
            return self._negated(children[0])
        if kind in _COMPARISONS:
            return self._comparison(kind, *children)
        if kind == "EqualNullSafe":
            return self._comparison("EqualTo", *children)
        if kind == "IsNull":
            return _IS_NULL(self.column(children[0]))
        if kind == "IsNotNull":
            return _NOT_NULL(self.column(children[0]))
        if kind == "In":
            return _IN(self.column(children[0]), [value_of(child) for child in children[1:]])
        if kind == "InSet":
            return _IN(self.column(children[0]), _values_of_set(node))
        if kind == "StartsWith":
            return _STARTS_WITH(self.column(children[0]), value_of(children[1]))
        if kind == "AttributeReference" and node.fields["dataType"] == "boolean":
            return _EQUAL(self.column(node), True)
        if kind == "Literal" and node.fields["dataType"] == "boolean":
            return p.TRUE if value_of(node) else p.FALSE
        raise Unsaid(kind)

    def _negated(self, child: Node) -> p.BooleanExpression:
        # NOT (a <=> 5) holds for nulls and NOT (a < 5) for NaN: a plain negation could say no to them.
        if any(node.kind == "EqualNullSafe" or _is_float(node) for node in _all(child)):
            raise Unsaid("negation")
        return p.Not(self.exact(child))

    def _comparison(self, kind: str, left: Node, right: Node) -> p.BooleanExpression:
        if left.kind == "Literal":
            kind, left, right = _FLIPPED[kind], right, left
        name, value = self.column(left), value_of(right)
        compared = _COMPARISONS[kind](name, value)
        if kind.startswith("Greater") and _is_float(left):
            # Spark sorts NaN above every number; bounds know nothing of it.
            return p.Or(compared, _IS_NAN(name))
        return compared

    def column(self, node: Node) -> str:
        """The dotted name of a column or of a field inside a struct, as the metadata spells it."""
        name = self.columns.get(_scan_name(node))
        if name is None:
            raise Unsaid(node.kind)
        return name


def _scan_name(node: Node) -> str:
    if node.kind == "AttributeReference":
        return str(node.fields["name"])
    if node.kind == "GetStructField":
        parent = node.children[0]
        inside = _type_of(parent)
        if isinstance(inside, Mapping) and inside.get("type") == "struct":
            return f"{_scan_name(parent)}.{inside['fields'][node.fields['ordinal']]['name']}"
    raise Unsaid(node.kind)


def _type_of(node: Node) -> Any:
    if node.kind == "AttributeReference":
        return node.fields["dataType"]
    if node.kind == "GetStructField":
        inside = _type_of(node.children[0])
        return inside["fields"][node.fields["ordinal"]]["type"] if isinstance(inside, Mapping) else None
    return node.fields.get("dataType")


def _is_float(node: Node) -> bool:
    return _type_of(node) in ("float", "double")


def _all(node: Node) -> Iterable[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


def value_of(node: Node) -> Any:
    """The value of a literal; one that Python cannot hold exactly is not said."""
    if node.kind != "Literal" or node.fields.get("value") is None:
        raise Unsaid("no literal")
    kind = node.fields["dataType"]
    if kind == "binary":
        return bytes(node.in_jvm().value())
    if kind in ("timestamp", "timestamp_ntz"):
        # The JSON prints the instant in the JVM's own time zone; the microseconds are exact.
        return parsed(kind, str(node.in_jvm().value()))
    return parsed(kind, str(node.fields["value"]))


def parsed(kind: Any, text: str) -> Any:
    """A printed value of Spark's type as a Python value; a timestamp is printed as microseconds."""
    try:
        if kind in ("integer", "long", "short", "byte"):
            return int(text)
        if kind == "string":
            return text
        if kind == "boolean":
            return text.lower() == "true"
        if kind == "date":
            return dt.date.fromisoformat(text)
        if kind in ("float", "double") and float(text) == float(text):
            return float(text)
        if isinstance(kind, str) and kind.startswith("decimal"):
            return Decimal(text)
        if kind == "timestamp":
            return (_EPOCH + dt.timedelta(microseconds=int(text))).replace(tzinfo=dt.UTC)
        if kind == "timestamp_ntz":
            return _EPOCH + dt.timedelta(microseconds=int(text))
    except (ValueError, OverflowError, ArithmeticError):
        raise Unsaid(f"{kind} {text}") from None
    raise Unsaid(kind)


def _values_of_set(node: Node) -> list[Any]:
    """The values of an IN of more than ten, which the JSON leaves out; all come in one call."""
    kind = _type_of(node.children[0])
    found = node.in_jvm().hset()
    texts = str(found.mkString(_SEPARATOR)).split(_SEPARATOR)
    if len(texts) != found.size() or kind == "binary" or "null" in texts:
        raise Unsaid("set")
    if kind == "date":
        return [dt.date(1970, 1, 1) + dt.timedelta(days=int(text)) for text in texts]
    return [parsed(kind, text) for text in texts]
