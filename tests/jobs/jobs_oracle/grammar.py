"""Statements of random jobs files: each part can say itself in Spark's SQL, in SQLite's, and as a conflict filter.

Nothing here reads SQL: the generator makes these values, and so the brute force never meets the reader under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from lakeproof.filters import ALWAYS, NEVER, Compare, Expression, In, IsNull, StartsWith, all_of, any_of
from lakeproof.format import Value

NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Column:
    """A column of a table: its name and its type in SQL."""

    name: str
    type: str


@dataclass(frozen=True)
class Table:
    """A table of a jobs file. `partition`: a column and a transform, as SQL and as Iceberg name it."""

    name: str
    columns: tuple[Column, ...]
    partition: tuple[tuple[str, str, str], ...] = ()  # (column, SQL text, transform)
    properties: tuple[tuple[str, str], ...] = ()

    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    def type_of(self, name: str) -> str:
        """The type of a column."""
        return next(column.type for column in self.columns if column.name == name)


def spark(value: Value) -> str:
    """A value as a Spark literal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp_ntz '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, float):
        return f"{value!r}D"
    return f"'{value}'" if isinstance(value, str) else str(value)


def stored(value: Value) -> object:
    """A value as SQLite stores it: text that sorts as the value does, or a number."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return int(value) if isinstance(value, bool) else value


def lite(value: Value) -> str:
    """A value as a SQLite literal."""
    held = stored(value)
    return "null" if held is None else f"'{held}'" if isinstance(held, str) else repr(held)


def loaded(held: object, kind: str) -> Value:
    """A value as SQLite gives it back, by the type of its column."""
    if held is None:
        return None
    if kind == "boolean":
        return bool(held)
    if kind == "date":
        return date.fromisoformat(str(held))
    if kind.startswith("timestamp"):
        return datetime.fromisoformat(str(held))
    if kind.startswith("decimal"):
        return Decimal(str(round(float(str(held)), 2))).quantize(Decimal("0.01"))
    if kind == "double":
        return float(str(held))
    return str(held) if kind == "string" else int(str(held))


class Predicate:
    """A condition on a row."""

    cautious = False

    def spark(self) -> str:
        """In Spark's SQL."""
        raise NotImplementedError

    def lite(self) -> str:
        """In SQLite's SQL."""
        raise NotImplementedError

    def filter(self, positive: bool = True) -> Expression:
        """What a metadata filter can know of it: true of every row where it is true (or, negated, false)."""
        return ALWAYS


@dataclass(frozen=True)
class Compares(Predicate):
    """`column operator constant`."""

    column: str
    operator: str
    value: Value
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column} {self.operator} {spark(self.value)}"

    def lite(self) -> str:
        return f"{self.qualifier}{self.column} {self.operator} {lite(self.value)}"

    def filter(self, positive: bool = True) -> Expression:
        if self.value is None:
            return NEVER
        return Compare(self.column, self.operator if positive else NEGATED[self.operator], self.value)


@dataclass(frozen=True)
class Null(Predicate):
    """`column is [not] null`."""

    column: str
    negative: bool
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column} is {'not ' * self.negative}null"

    lite = spark

    def filter(self, positive: bool = True) -> Expression:
        return IsNull(self.column, negative=self.negative == positive)


@dataclass(frozen=True)
class Distinct(Predicate):
    """`column is [not] distinct from constant`."""

    column: str
    value: Value
    negative: bool
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column} is {'not ' * self.negative}distinct from {spark(self.value)}"

    def lite(self) -> str:
        return f"{self.qualifier}{self.column} is {'not ' * (not self.negative)}{lite(self.value)}"

    def filter(self, positive: bool = True) -> Expression:
        if self.negative == positive:
            return Compare(self.column, "=", self.value)
        return any_of([Compare(self.column, "!=", self.value), IsNull(self.column)])


@dataclass(frozen=True)
class OneOf(Predicate):
    """`column [not] in (constants)`, where a constant may be NULL."""

    column: str
    values: tuple[Value, ...]
    negative: bool
    qualifier: str = ""

    def _said(self, values: list[str]) -> str:
        return f"{self.qualifier}{self.column} {'not ' * self.negative}in ({', '.join(values)})"

    def spark(self) -> str:
        return self._said([spark(value) for value in self.values])

    def lite(self) -> str:
        return self._said([lite(value) for value in self.values])

    def filter(self, positive: bool = True) -> Expression:
        known = tuple(value for value in self.values if value is not None)
        outside = self.negative == positive
        if outside and len(known) < len(self.values):
            return NEVER
        return In(self.column, known, negative=outside)


@dataclass(frozen=True)
class Between(Predicate):
    """`column between low and high`."""

    column: str
    low: Value
    high: Value
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column} between {spark(self.low)} and {spark(self.high)}"

    def lite(self) -> str:
        return f"{self.qualifier}{self.column} between {lite(self.low)} and {lite(self.high)}"

    def filter(self, positive: bool = True) -> Expression:
        if positive:
            return all_of([Compare(self.column, ">=", self.low), Compare(self.column, "<=", self.high)])
        return any_of([Compare(self.column, "<", self.low), Compare(self.column, ">", self.high)])


@dataclass(frozen=True)
class Prefix(Predicate):
    """`column [not] like 'prefix%'`."""

    column: str
    prefix: str
    negative: bool
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column} {'not ' * self.negative}like '{self.prefix}%'"

    lite = spark

    def filter(self, positive: bool = True) -> Expression:
        return StartsWith(self.column, self.prefix, negative=self.negative == positive)


@dataclass(frozen=True)
class Bare(Predicate):
    """A boolean column by itself."""

    column: str
    qualifier: str = ""

    def spark(self) -> str:
        return f"{self.qualifier}{self.column}"

    lite = spark

    def filter(self, positive: bool = True) -> Expression:
        return Compare(self.column, "=", positive)


@dataclass(frozen=True)
class Odd(Predicate):
    """A condition that no metadata filter can know: it says itself in both dialects."""

    text: str
    cautious: bool = True

    def spark(self) -> str:
        return self.text

    lite = spark


@dataclass(frozen=True)
class Not(Predicate):
    """`not (condition)`."""

    part: Predicate

    def spark(self) -> str:
        return f"not ({self.part.spark()})"

    def lite(self) -> str:
        return f"not ({self.part.lite()})"

    def filter(self, positive: bool = True) -> Expression:
        return self.part.filter(not positive)


@dataclass(frozen=True)
class Joined(Predicate):
    """Conditions with `and` or `or` between them."""

    word: str
    parts: tuple[Predicate, ...]

    def spark(self) -> str:
        return f" {self.word} ".join(f"({part.spark()})" for part in self.parts)

    def lite(self) -> str:
        return f" {self.word} ".join(f"({part.lite()})" for part in self.parts)

    def filter(self, positive: bool = True) -> Expression:
        parts = [part.filter(positive) for part in self.parts]
        return all_of(parts) if (self.word == "and") == positive else any_of(parts)


TRUE = Odd("true", cautious=False)


@dataclass(frozen=True)
class Guard:
    """A subquery on a table: `[not] exists (…)` or `column [not] in (select …)`."""

    table: str
    where: Predicate
    negative: bool
    column: str = ""  # set: IN instead of EXISTS
    correlated: str = ""  # set: the inner row must have the same value in this column

    def said(self, where: str) -> str:
        """The subquery in SQL; both dialects agree but for the condition."""
        if self.column:
            inner = f"select {self.column} from {self.table} x where {where}"
            return f"t.{self.column} {'not ' * self.negative}in ({inner})"
        also = f" and x.{self.correlated} = t.{self.correlated}" if self.correlated else ""
        return f"{'not ' * self.negative}exists (select 1 from {self.table} x where ({where}){also})"


@dataclass(frozen=True)
class Term:
    """A value to write: a constant, or a column of the target (`t`) or the source (`s`) and perhaps a number more.

    `first`: only the first letter of a string, which only the brute force knows exactly.
    """

    value: Value = None
    column: str = ""
    of: str = "t"
    plus: int = 0
    first: bool = False

    def said(self, literal: str) -> str:
        """The term in SQL, given the constant's own text."""
        if not self.column:
            return literal
        if self.first:
            return f"substr({self.of}.{self.column}, 1, 1)"
        return f"{self.of}.{self.column}" + (f" + {self.plus}" if self.plus else "")

    def spark(self) -> str:
        """In Spark's SQL."""
        return self.said(spark(self.value))

    def lite(self) -> str:
        """In SQLite's SQL."""
        return self.said(lite(self.value))


@dataclass(frozen=True)
class Clause:
    """A WHEN clause of a MERGE."""

    when: str
    then: str
    condition: Predicate | None = None
    sets: tuple[tuple[str, Term], ...] = ()


@dataclass(frozen=True)
class Statement:
    """A statement of any kind; only the parts of its kind are set."""

    kind: str  # insert | feed (any one row) | insert select | count | update | delete | truncate | overwrite | …
    table: str
    where: Predicate = TRUE
    guard: Guard | None = None
    rows: tuple[tuple[Value, ...], ...] = ()
    sets: tuple[tuple[str, Term], ...] = ()
    terms: tuple[Term, ...] = ()
    partition: tuple[tuple[str, Value], ...] = ()
    source_table: str = ""  # of INSERT … SELECT and of a MERGE from a table
    source_columns: tuple[Column, ...] = ()
    source: tuple[tuple[Value, ...], ...] = ()  # of a MERGE; empty: any one row
    on: tuple[tuple[str, str], ...] = ()
    on_more: Predicate | None = None
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True)
class Job:
    """A named job."""

    name: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class File:
    """A jobs file. `cautious`: it has a part that only the brute force knows exactly."""

    seed: int
    tables: tuple[Table, ...]
    jobs: tuple[Job, ...]
    policy: str
    rows: tuple[tuple[str, tuple[tuple[Value, ...], ...]], ...] = ()  # (table, rows of one INSERT) of the set-up
    cautious: bool = False
    constants: dict[str, list[Value]] = field(default_factory=dict, compare=False)
