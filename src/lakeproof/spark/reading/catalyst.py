"""Spark's conditions as filters of ours: the one translation, which says of each answer whether it is exact.

A tree comes over as JSON in one call. `translated` gives a filter that holds wherever the condition does. If nothing
was left out the answer is exact, and files may be counted or dropped by it; otherwise it is weaker, and may only spare
files or tell which concurrent rows mattered.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from lakeproof.filters import (
    ALWAYS,
    NEVER,
    Compare,
    Expression,
    In,
    IsNull,
    StartsWith,
    all_of,
    any_of,
)
from lakeproof.format import Value
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, texts_of

_EPOCH = dt.datetime(1970, 1, 1)
_SIGNS = {"EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">="}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"=": "!=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Untranslatable(Exception):
    """This part of a condition has no filter."""


class Translation(NamedTuple):
    """A filter that holds wherever a condition does; `exact`: and nowhere else."""

    filter: Expression
    exact: bool


class CatalystNode:
    """One node of a Catalyst tree, able to ask the JVM for what its JSON leaves out."""

    def __init__(
        self, fields: Mapping[str, Any], children: list[CatalystNode], expression: Any, path: tuple[int, ...]
    ) -> None:
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

    def every(self) -> Iterator[CatalystNode]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.every()


def tree_of(expression: Any) -> CatalystNode:
    """The tree of a JVM expression; Catalyst's JSON lists nodes in pre-order with their numbers of children."""
    rest = iter(json.loads(expression.toJSON()))

    def read(path: tuple[int, ...]) -> CatalystNode:
        fields = next(rest)
        children = [read((*path, number)) for number in range(fields["num-children"])]
        return CatalystNode(fields, children, expression, path)

    return read(())


def trees_of(gateway: Gateway, expressions: Any) -> list[CatalystNode]:
    """The trees of a Scala Seq of expressions, all in one call: each call to the JVM has its price."""
    return tree_of(gateway.module(spark41.CREATE_ARRAY).apply(expressions)).children


def conjuncts_of(condition: Any) -> list[CatalystNode]:
    """The trees of the parts that AND joins in a JVM expression."""
    return list(_parts(tree_of(condition)))


def _parts(tree: CatalystNode) -> Iterator[CatalystNode]:
    if tree.kind != "And":
        yield tree
        return
    for child in tree.children:
        yield from _parts(child)


def translated(trees: Iterable[CatalystNode], columns: Mapping[str, str]) -> Translation:
    """The conjunction of conditions, as a filter on the table's columns.

    `columns` maps the scan's (dotted) names to those of the metadata; a condition on any other column (a hidden one, a
    field of `_metadata`) is left out.
    """
    reader = _Reader(columns)
    parts = [reader.read(tree, True) for tree in trees]
    return Translation(all_of(part.filter for part in parts), all(part.exact for part in parts))


def column_of_node(node: CatalystNode, columns: Mapping[str, str]) -> str:
    """The column, or the field inside a struct, that a node is; as the metadata spells it."""
    return _Reader(columns).column(node)


class _Reader:
    """Reads trees over one set of columns."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = columns
        lowered = [name.lower() for name in columns]
        self.in_any_case = {name.lower(): columns[name] for name in columns if lowered.count(name.lower()) == 1}

    def read(self, node: CatalystNode, truth: bool) -> Translation:
        """The rows for which the node is true, or those for which it is false; for neither where it is null.

        Pushing the wanted truth value down to the leaves keeps SQL's third one apart, and lets a leaf be left out
        under any number of negations: conjunction and disjunction only grow with their parts.
        """
        if node.kind == "Not":
            return self.read(node.children[0], not truth)
        if node.kind in ("And", "Or"):
            parts = [self.read(child, truth) for child in node.children]
            join = all_of if (node.kind == "And") == truth else any_of
            return Translation(join(part.filter for part in parts), all(part.exact for part in parts))
        try:
            return Translation(self._leaf(node, truth), True)
        except Untranslatable:
            return Translation(ALWAYS, False)

    def _leaf(self, node: CatalystNode, truth: bool) -> Expression:
        kind, children = node.kind, node.children
        if kind in _SIGNS or kind == "EqualNullSafe":
            left, right = children
            sign = _SIGNS.get(kind, "=")
            if left.kind == "Literal":
                sign, left, right = _MIRRORED[sign], right, left
            column, value = self.column(left), value_of(right)
            return null_safe(column, value, truth) if kind not in _SIGNS else comparison(column, sign, value, truth)
        if kind in ("IsNull", "IsNotNull"):
            return IsNull(self.column(children[0]), negative=(kind == "IsNull") != truth)
        if kind in ("In", "InSet"):
            values = [value_of(child) for child in children[1:]] if kind == "In" else _values_of_set(node)
            return membership(self.column(children[0]), values, truth)
        if kind == "StartsWith":
            prefix = value_of(children[1])
            return NEVER if prefix is None else StartsWith(self.column(children[0]), prefix, negative=not truth)
        if kind == "Literal" and node.fields["dataType"] == "boolean":
            return ALWAYS if value_of(node) is truth else NEVER
        if kind in ("AttributeReference", "GetStructField") and _type_of(node) == "boolean":
            return Compare(self.column(node), "=", truth)
        raise Untranslatable(kind)

    def column(self, node: CatalystNode) -> str:
        """The dotted name of a column or of a field inside a struct, as the metadata spells it."""
        told = _scan_name(node)
        name = self.columns.get(told) or self.in_any_case.get(told.lower())
        if name is None:
            raise Untranslatable(node.kind)
        return name


def comparison(column: str, sign: str, value: Value, truth: bool) -> Expression:
    """`column sign value`, or where that is false; with null it is neither."""
    if sign not in _OPPOSITE:
        raise Untranslatable(sign)
    return NEVER if value is None else Compare(column, sign if truth else _OPPOSITE[sign], value)


def null_safe(column: str, value: Value, truth: bool) -> Expression:
    """`column <=> value`, or where that is false; it is never null."""
    if value is None:
        return IsNull(column, negative=not truth)
    return Compare(column, "=", value) if truth else any_of([IsNull(column), Compare(column, "!=", value)])


def membership(column: str, values: Sequence[Value], truth: bool) -> Expression:
    """`column IN (values)`, or where that is false: a null in the list makes every miss unknown."""
    known = tuple(value for value in values if value is not None)
    if truth:
        return In(column, known) if known else NEVER
    return NEVER if len(known) < len(values) else In(column, known, negative=True)


def _scan_name(node: CatalystNode) -> str:
    if node.kind == "AttributeReference":
        return str(node.fields["name"])
    if node.kind == "GetStructField":
        parent = node.children[0]
        inside = _type_of(parent)
        if isinstance(inside, Mapping) and inside.get("type") == "struct":
            return f"{_scan_name(parent)}.{inside['fields'][node.fields['ordinal']]['name']}"
    raise Untranslatable(node.kind)


def _type_of(node: CatalystNode) -> Any:
    if node.kind == "AttributeReference":
        return node.fields["dataType"]
    if node.kind == "GetStructField":
        inside = _type_of(node.children[0])
        return inside["fields"][node.fields["ordinal"]]["type"] if isinstance(inside, Mapping) else None
    return node.fields.get("dataType")


def value_of(node: CatalystNode) -> Any:
    """The value of a literal (`None`: null); one that Python cannot hold exactly has no translation."""
    if node.kind != "Literal":
        raise Untranslatable("no literal")
    kind = node.fields["dataType"]
    if node.fields.get("value") is None:
        return None
    if kind == "binary":
        return bytes(node.in_jvm().value())
    if kind in ("timestamp", "timestamp_ntz"):
        # The JSON prints the instant in the JVM's own time zone; the microseconds are exact.
        return parse_printed(kind, str(node.in_jvm().value()))
    return parse_printed(kind, str(node.fields["value"]))


_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("integer", "long", "short", "byte"), int),
    "string": str,
    "boolean": lambda text: text.lower() == "true",
    "date": dt.date.fromisoformat,
    "double": float,
    "float": lambda text: float(np.float32(text)),  # Spark prints the shortest text that means this float
    "timestamp": lambda text: (_EPOCH + dt.timedelta(microseconds=int(text))).replace(tzinfo=dt.UTC),
    "timestamp_ntz": lambda text: _EPOCH + dt.timedelta(microseconds=int(text)),
}


def parse_printed(kind: Any, text: str) -> Any:
    """A printed value of Spark's type as a Python value; a timestamp is printed as microseconds."""
    parser: Callable[[str], Any] | None = _PARSERS.get(kind) if isinstance(kind, str) else None
    if isinstance(kind, str) and kind.startswith("decimal"):
        parser = Decimal
    if parser is None:
        raise Untranslatable(kind)
    try:
        return parser(text)
    except (ValueError, OverflowError, ArithmeticError):
        raise Untranslatable(f"{kind} {text}") from None


def _values_of_set(node: CatalystNode) -> list[Any]:
    """The values of an IN of more than ten, which the JSON leaves out; all come in one call."""
    kind = _type_of(node.children[0])
    found = node.in_jvm().hset()
    texts = texts_of(found)
    if len(texts) != found.size() or kind == "binary" or "null" in texts:
        raise Untranslatable("set")
    if kind == "date":
        return [dt.date(1970, 1, 1) + dt.timedelta(days=int(text)) for text in texts]
    return [parse_printed(kind, text) for text in texts]
