"""Which values each column is tried with: every constant that some statement compares it with, what lies between and
beside them, values that no statement names, and NULL.

Columns that are compared with each other, or written from one another, share their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lakeproof.format import PartitionField, Value
from lakeproof.jobs.first_tables.gaps import fresh, with_gaps
from lakeproof.jobs.first_tables.marks import (
    of_kind,
    of_partitions,
    partition_edges,
    prefix_marks,
    same_buckets,
    shifted,
)
from lakeproof.sql.expressions import (
    SOURCE,
    TARGET,
    Call,
    Column,
    Constant,
    Node,
    Subquery,
    Unknown,
    columns_in,
    every_node,
)
from lakeproof.sql.job_statements import JobStatement, nodes_of

Key = tuple[str, str]
"""A table, or `#n` for the source of statement n, and a column."""

_ORDERED = ("<", "<=", ">", ">=")
_COMPARISONS = ("=", "!=", "<=>", *_ORDERED)


@dataclass
class ColumnGroup:
    """Columns that share their values."""

    constants: dict[Any, None] = field(default_factory=dict)
    read: bool = False
    ordered: bool = False
    paired: bool = False  # compared with another column: two unnamed values are needed
    ordered_pairs: bool = False  # and by order, not only by equality
    shifts: dict[Any, None] = field(default_factory=dict)
    partitions: list[PartitionField] = field(default_factory=list)
    asked: bool = False  # some condition looks at it; otherwise it is read for its partition alone


class Domain(NamedTuple):
    """The values of one column. `read`: some statement chooses rows by them. `named`: what the file spells out."""

    values: tuple[Value, ...]
    read: bool
    named: frozenset[Value]
    twins: tuple[tuple[Value, ...], ...] = ()  # unnamed values that no statement can tell apart

    def tried(self) -> tuple[Value, ...]:
        """What a first row or a source row may hold: every value and NULL, or one value where nobody looks."""
        return (*self.values, None) if self.read else self.values[:1]


class Witnesses:
    """The values of every column of a jobs file."""

    def __init__(
        self,
        statements: list[JobStatement],
        tables: Mapping[str, Mapping[str, tuple[str, str]]],
        partitions: Mapping[str, tuple[PartitionField, ...]],
    ) -> None:
        self.kinds: dict[Key, str] = {
            (table, name): kind for table, columns in tables.items() for name, kind in columns.values()
        }
        self.parent: dict[Key, Key] = {}
        self.asked: dict[Key, dict[Node, None]] = {}  # conditions on one column and constants
        self.exactly: set[Key] = set()  # columns whose very values matter: compared with others, copied on, partitions
        self.groups: dict[Key, ColumnGroup] = {}
        for number, statement in enumerate(statements):
            _Reader(self, number, statement).read()
        for table, fields in partitions.items():
            for one in fields:
                self._partitioned((table, one.column), one)

    # ------------------------------------------------------------ groups

    def find(self, key: Key) -> Key:
        """The key that stands for the group of this one."""
        while self.parent.get(key, key) != key:
            key = self.parent[key]
        return key

    def group(self, key: Key) -> ColumnGroup:
        """The group of a column."""
        return self.groups.setdefault(self.find(key), ColumnGroup())

    def join(self, one: Key, other: Key) -> None:
        """The two columns share their values."""
        left, right = self.find(one), self.find(other)
        if left == right:
            return
        a, b = self.groups.pop(left, ColumnGroup()), self.groups.pop(right, ColumnGroup())
        self.parent[right] = left
        self.groups[left] = ColumnGroup(
            {**a.constants, **b.constants},
            a.read or b.read,
            a.ordered or b.ordered,
            a.paired or b.paired,
            a.ordered_pairs or b.ordered_pairs,
            {**a.shifts, **b.shifts},
            [*a.partitions, *b.partitions],
            a.asked or b.asked,
        )

    def atoms(self, key: Key) -> tuple[Node, ...] | None:
        """The conditions through which alone a column is seen; `None`: its very values matter."""
        return None if key in self.exactly else tuple(self.asked.get(key, ()))

    def _partitioned(self, key: Key, one: PartitionField) -> None:
        self.exactly.add(key)
        group = self.group(key)
        group.read = group.paired = True
        group.partitions.append(one)
        if one.transform.startswith("truncate"):
            group.ordered = True

    # ------------------------------------------------------------ values

    def _before(self, key: Key) -> int:
        """How many columns of other tables share this one's values and come before it: what they hold must differ.

        Else a value that is copied from one to the other would show no change.
        """
        if key[0].startswith("#"):
            return 0
        others = [one for one in self.kinds if one == key or not one[0].startswith("#")]
        return [one for one in others if self.find(one) == self.find(key)].index(key)

    def domain(self, key: Key) -> Domain:
        """The values of a column."""
        group, kind = self.group(key), self.kinds.get(key, "string")
        name = self.find(key)[1]  # of the group, so that columns that are compared have equal values
        named = of_kind(group.constants, kind)
        if kind == "boolean":
            values = sorted((True, False), key=named.__contains__)  # one that nobody writes first
            return Domain(tuple(values), group.read or len(named) > 1, frozenset((True, False)))
        if kind in ("other", "free", "null"):
            return Domain(tuple(fresh("string", 2, name=name)), group.read, frozenset())
        marks = [*named, *shifted(named, group.shifts, kind)]
        marks = [*marks, *partition_edges(marks, group.partitions, kind)]
        unnamed = 2 if group.paired else 1
        if not group.read:
            apart = self._before(key)
            return Domain(tuple(fresh(kind, apart + 2, name=name, taken=named)[apart:]), False, frozenset(named))
        if group.partitions and not group.asked:
            values = of_partitions([*named, *fresh(kind, 40, name=name, taken=named)], group.partitions)
            return Domain(tuple(values), True, frozenset(named))
        if group.ordered or any(p.transform != "identity" for p in group.partitions):
            values = with_gaps(dict.fromkeys(marks), kind, each=unnamed)
        else:
            values = [*dict.fromkeys(marks), *fresh(kind, unnamed, name=name, taken=marks)]
        twins = _twins(values, marks) if _interchangeable(group) else ()
        values = [*values, *same_buckets(values, group.partitions, kind)]
        ordered = [*named, *(value for value in values if value not in named)]
        return Domain(tuple(dict.fromkeys(ordered)), True, frozenset(named), twins)


class _Reader:
    """Tells the groups what one statement compares and writes."""

    def __init__(self, to: Witnesses, number: int, statement: JobStatement) -> None:
        self.to, self.statement = to, statement
        source = statement.source
        self.tables = {TARGET: statement.table, SOURCE: source.table if source and source.table else f"#{number}"}
        for node in nodes_of(statement):
            if isinstance(node, Subquery):
                self.tables[node.query.relation] = node.query.table
        for column in source.columns if source else ():
            to.kinds.setdefault(self.key(column), column.kind)

    def key(self, column: Column) -> Key:
        key = (self.tables[column.relation], column.name)
        self.to.kinds.setdefault(key, column.kind)
        return key

    def read(self) -> None:
        """All of the statement."""
        made = self.statement
        for node in nodes_of(made):
            self.condition(node)
        for column, value in self.written():
            self.flow((made.table, column), value)
        for name, fixed in made.partition:  # an overwrite of a partition asks every row for it
            self.constants(Column(TARGET, name, fixed.kind), (fixed.value,), ordered=False)
        if made.source is not None and not made.source.table and made.source.columns:
            for row in made.source.rows:
                for listed, value in zip(made.source.columns, row, strict=True):
                    self.flow(self.key(listed), value)

    def written(self) -> Iterator[tuple[str, Node]]:
        """Every column that the statement writes, with what it writes."""
        made = self.statement
        columns = [name for table, name in self.to.kinds if table == made.table]
        yield from made.sets
        for column, value, name in zip(columns, made.outputs, made.aggregates or [""] * len(columns), strict=False):
            counts = [Constant(count, "int") for count in (0, 1, 2)] if name.startswith("count") else [value]
            yield from ((column, one) for one in counts)
        for clause in made.clauses:
            yield from clause.sets
        if made.source is not None and not made.source.columns:
            for row in made.source.rows:
                yield from zip(columns, row, strict=False)
        yield from made.partition

    def condition(self, node: Node) -> None:
        if isinstance(node, Column) and node.kind == "boolean":
            self.to.group(self.key(node)).read = True
            self.ask(node, node)
        if isinstance(node, Subquery) and node.use == "in" and node.sought is not None:
            self.pair(node.sought, node.query.outputs[0], ordered=False)
            both = (*columns_in(node.sought), *columns_in(node.query.outputs[0]))
            self.to.exactly.update(self.key(one) for one in both)
        if not isinstance(node, Call):
            return
        if node.function in _COMPARISONS:
            self.pair(*node.parts, ordered=node.function in _ORDERED)
            column, other = node.parts
            if isinstance(column, Column) and isinstance(other, Constant):
                self.ask(column, node)
            else:
                self.to.exactly.update(self.key(one) for one in columns_in(node))
        elif node.function == "starts with" and isinstance(node.parts[0], Column):
            prefix = node.parts[1]
            assert isinstance(prefix, Constant)
            self.constants(node.parts[0], prefix_marks(str(prefix.value)), ordered=True)
            self.ask(node.parts[0], node)
        elif node.function == "is null" and isinstance(node.parts[0], Column):
            self.constants(node.parts[0], (), ordered=False)
            self.ask(node.parts[0], node)

    def ask(self, column: Column, node: Node) -> None:
        self.to.asked.setdefault(self.key(column), {})[node] = None

    def pair(self, one: Node, other: Node, *, ordered: bool) -> None:
        """Two sides of a comparison."""
        for left, right in ((one, other), (other, one)):
            if isinstance(left, Column) and isinstance(right, Constant):
                self.constants(left, (right.value,), ordered=ordered)
            elif isinstance(left, Column) and isinstance(right, Subquery):
                counts = right.query.aggregates[0].startswith("count") if right.query.aggregates else False
                self.constants(left, (0, 1, 2) if counts else (), ordered=True)
                for column in columns_in(right.query.outputs[0]):
                    self.pair(left, column, ordered=True)
            elif isinstance(left, Column) and isinstance(right, Column):
                self.to.join(self.key(left), self.key(right))
                group = self.to.group(self.key(left))
                group.read = group.paired = group.asked = True
                group.ordered = group.ordered or ordered
                group.ordered_pairs = group.ordered_pairs or ordered

    def constants(self, column: Column, values: Iterable[Any], *, ordered: bool) -> None:
        group = self.to.group(self.key(column))
        group.read = group.asked = True
        group.ordered = group.ordered or ordered
        group.constants |= dict.fromkeys(value for value in values if value is not None)

    def flow(self, key: Key, value: Node) -> None:
        """A column is written."""
        self.to.exactly.update(self.key(one) for one in columns_in(value) if one.relation in self.tables)
        if isinstance(value, Constant) and value.value is not None:
            self.to.group(key).constants[value.value] = None
        elif isinstance(value, Column):
            self.to.join(key, self.key(value))
        elif isinstance(value, Call) and value.function in ("+", "-"):
            column, step = value.parts
            assert isinstance(column, Column)
            assert isinstance(step, Constant)
            self.to.join(key, self.key(column))
            amount: Any = step.value
            self.to.group(key).shifts[amount if value.function == "+" else -amount] = None
        elif isinstance(value, Subquery):
            for column in columns_in(value.query.outputs[0]):
                self.to.join(key, self.key(column))
        elif isinstance(value, Unknown):
            for one in every_node(value.exact) if value.exact is not None else ():
                if isinstance(one, Column) and one.kind == self.to.kinds.get(key):
                    self.to.join(key, self.key(one))


def _interchangeable(group: ColumnGroup) -> bool:
    """Whether two unnamed values with no constant between them are alike to every statement and partition."""
    plain = all(field.transform == "identity" for field in group.partitions)
    return not group.ordered_pairs and not group.shifts and plain


def _twins(values: list[Any], marks: list[Any]) -> tuple[tuple[Value, ...], ...]:
    """Runs of unnamed values with no mark between them."""
    found: list[list[Value]] = [[]]
    for value in values:
        if value in marks:
            found.append([])
        else:
            found[-1].append(value)
    return tuple(tuple(run) for run in found if len(run) > 1)
