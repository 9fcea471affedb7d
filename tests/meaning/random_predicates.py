"""Random predicates of every shape over the columns of a table, as trees that can be made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from column_kinds import KINDS, Column, Kind, scalars
from predicate_forms import ANY_TYPE, COMPARISONS, COMPUTED, NESTED, PARAMETERS, PATTERNS, Parameter

TABLE = "{t}"  # where the table's name stands in a statement
QUALIFIER = "{q}"  # where a qualifier of its columns stands, with its dot


class Leaf(NamedTuple):
    """A predicate that is not divided any further."""

    text: str


class Not(NamedTuple):
    """The negation."""

    inner: Predicate


class Joined(NamedTuple):
    """AND or OR of two."""

    word: str
    left: Predicate
    right: Predicate


Predicate = Leaf | Not | Joined


def said(predicate: Predicate) -> str:
    """The predicate as SQL."""
    match predicate:
        case Not(inner):
            return f"not ({said(inner)})"
        case Joined(word, left, right):
            return f"({said(left)}) {word} ({said(right)})"
        case Leaf(text):
            return text


def smaller(predicate: Predicate) -> Iterator[Predicate]:
    """Predicates with one connective fewer."""
    match predicate:
        case Not(inner):
            yield inner
            for one in smaller(inner):
                yield Not(one)
        case Joined(word, left, right):
            yield left
            yield right
            for one in smaller(left):
                yield Joined(word, one, right)
            for one in smaller(right):
                yield Joined(word, left, one)


def may_skip_rows(predicate: Predicate) -> bool:
    """Whether a part of it may keep Spark from computing another part, which might fail."""
    return isinstance(predicate, Joined) or (isinstance(predicate, Not) and may_skip_rows(predicate.inner))


class Asking:
    """Makes predicates over some columns; with a prefix they are simple: no subqueries, no parameters."""

    def __init__(self, r: Random, columns: tuple[Column, ...], *, prefix: str = "") -> None:
        self.r, self.columns, self.prefix, self.subqueries = r, columns, prefix, not prefix
        self.parameters: list[Parameter] = []
        self.found = [(prefix + name, kind) for name, kind in scalars(columns)]

    def predicate(self, depth: int | None = None) -> Predicate:
        """One predicate."""
        left = self.r.choice((0, 0, 1, 1, 2, 3)) if depth is None else depth
        if left == 0:
            return Leaf(self.leaf())
        if self.r.random() < 0.3:
            return Not(self.predicate(left - 1))
        word = self.r.choice(("and", "or"))
        return Joined(word, self.predicate(left - 1), self.predicate(self.r.randrange(left)))

    def leaf(self) -> str:
        """A predicate without a connective."""
        shapes = [self._compared] * 8 + [self._null, self._membership, self._membership, self._between, self._like]
        shapes += [self._like, self._computed, self._computed, self._whole, self._conditional, self._odd]
        if self.subqueries:
            shapes.append(self._subquery)
        return self.r.choice(shapes)()

    def operand(self) -> tuple[str, Kind]:
        """A column or a field of one, sometimes qualified or in capitals, with its kind."""
        name, kind = self.r.choice(self.found)
        if "`" not in name and self.r.random() < 0.04:
            name = name.upper()
        return (f"{QUALIFIER}{name}" if not self.prefix and self.r.random() < 0.12 else name), kind

    def literal(self, kind: Kind, strange: float = 0.25) -> str:
        """What a value of the kind is compared with."""
        r = self.r
        if r.random() < 0.06:
            return "null"
        if kind.strange and r.random() < strange:
            return r.choice(kind.strange)
        if not self.prefix and r.random() < 0.04:
            return self.parameter()
        value = r.choice(kind.values)
        typed = kind.type in ("int", "string", "date", "timestamp", "timestamp_ntz", "binary", "boolean")
        return value if typed and r.random() < 0.7 else f"cast({value} as {kind.type})"

    def parameter(self) -> str:
        """A place for an argument of the statement."""
        self.parameters.append(self.r.choice(PARAMETERS))
        return f"{{a{len(self.parameters) - 1}}}"

    def _compared(self) -> str:
        name, kind = self.operand()
        same = [other for other, its in self.found if its is kind and other != name]
        if same and self.r.random() < 0.12:
            return f"{name} {self.r.choice(COMPARISONS)} {self.r.choice(same)}"
        literal, sign = self.literal(kind), self.r.choice(COMPARISONS)
        return f"{literal} {sign} {name}" if self.r.random() < 0.2 else f"{name} {sign} {literal}"

    def _null(self) -> str:
        names = [self.prefix + column.sql for column in self.columns] + [name for name, _ in self.found]
        return f"{self.r.choice(names)} is {self.r.choice(('', 'not '))}null"

    def _membership(self) -> str:
        name, kind = self.operand()
        count = self.r.randrange(1, 5) if self.r.random() < 0.85 else 13  # of many Spark makes a set
        listed = [self.literal(kind, 0.15 if count < 13 else 0) for _ in range(count)]
        return f"{name} {self.r.choice(('', 'not '))}in ({', '.join(listed)})"

    def _between(self) -> str:
        name, kind = self.operand()
        return f"{name} {self.r.choice(('', 'not '))}between {self.literal(kind)} and {self.literal(kind)}"

    def _of(self, *types: str) -> str | None:
        names = [name for name, kind in self.found if kind.type in types]
        return self.r.choice(names) if names else None

    def _like(self) -> str:
        name = self._of("string")
        if name is None:
            return self._compared()
        word, pattern = self.r.choice(("like", "like", "not like", "ilike", "not ilike")), self.r.choice(PATTERNS)
        simple = self.r.choice(("startswith", "endswith", "contains"))
        if self.r.random() < 0.25:
            return f"{simple}({name}, {self.r.choice(KINDS['string'].values)})"
        return f"{name} {word} '{pattern}'"

    def _computed(self) -> str:
        """A function of a column, compared."""
        name, kind = self.operand()
        forms = COMPUTED.get(kind.type.partition("(")[0], ("coalesce({c}, {v}) = {v}",))
        form = self.r.choice((*forms, *ANY_TYPE))
        value = f"cast({self.r.choice(kind.values)} as {kind.type})"
        return form.replace("{c}", name).replace("{v}", value).replace("{o}", self.r.choice(COMPARISONS))

    def _whole(self) -> str:
        """A predicate on a nested column as a whole, or an element of it."""
        pairs = [(column, form) for column in self.columns for form in NESTED.get(column.kind, ())]
        if not pairs:
            return self._compared()
        column, form = self.r.choice(pairs)
        return form.replace("{c}", self.prefix + column.sql).replace("{v}", column.of.value(self.r, 0))

    def _conditional(self) -> str:
        inner = said(Leaf(self._compared()))
        form = self.r.choice(
            ("coalesce({p}, true)", "({p}) is null", "({p}) <=> true", "if({p}, false, true)", "({p}) = false",
             "case when {p} then {o} else {o} end", "({p}) is not true", "nvl({p}, false)", "({p}) in (true, null)")
        )  # fmt: skip
        return form.replace("{p}", inner).replace("{o}", self.r.choice(("true", "false", "null")))

    def _odd(self) -> str:
        name = self._of("boolean")
        odd = ["true", "false", "null", "1 = 1", "1 = 2", "cast(null as boolean)", "not null", "'a' < 'b'"]
        return self.r.choice([*odd, *([name] * 4 if name else [])])

    def _subquery(self) -> str:
        name, kind = self.operand()
        other = self.r.choice(list(self.columns)).sql
        return self.r.choice(
            (
                f"{name} in (select {name.removeprefix(QUALIFIER)} from {TABLE} where {other} is not null)",
                f"{name} not in (select o.{name.removeprefix(QUALIFIER)} from {TABLE} o where o.id < 3)",
                f"exists (select 1 from {TABLE} o where o.id > {QUALIFIER}id and o.{other} <=> {QUALIFIER}{other})"
                if KINDS["map"].type not in [column.of.type for column in self.columns if column.sql == other]
                else f"exists (select 1 from {TABLE} o where o.id = {QUALIFIER}id + 1)",
                f"{name} = (select max(o.{name.removeprefix(QUALIFIER)}) from {TABLE} o)",
                f"not exists (select 1 from {TABLE} o where o.id < {QUALIFIER}id)",
                f"id < (select avg(id) from {TABLE})",
                f"{name} {self.r.choice(COMPARISONS)} (select {self.literal(kind, 0)})",
            )
        )
