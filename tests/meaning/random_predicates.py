"""Random predicates of every shape over the columns of a table, as trees that can be made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from column_kinds import KINDS, Column, Kind, quoted, scalars

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "=", "<", ">")
PATTERNS = (
    "a%",
    "ab%",
    "%b",
    "%",
    "_",
    "a_",
    "%a%",
    "",
    "a\\\\%b",
    "aaaaaaaaaaaaaaab%",
    "A%",
    "é%",
    "it''s",
    "a%b%",
    "\\\\%",
)
TABLE = "{t}"  # where the table's name stands in a statement
QUALIFIER = "{q}"  # where a qualifier of its columns stands, with its dot


class Parameter(NamedTuple):
    """An argument of a statement, and the literal that it stands for."""

    value: Any
    literal: str


PARAMETERS = (
    Parameter(1, "1"),
    Parameter(-5, "-5"),
    Parameter(1 << 40, "1099511627776"),
    Parameter("a", "'a'"),
    Parameter("it's", "'it''s'"),
    Parameter("10", "'10'"),
    Parameter(1.5, "1.5D"),
    Parameter(float("nan"), "double('NaN')"),
    Parameter(None, "null"),
    Parameter(True, "true"),
    Parameter(Decimal("5.00"), "5.00BD"),
    Parameter(date(2024, 2, 29), "date'2024-02-29'"),
)


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
    """Predicates with one connective less."""
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
        listed = [self.literal(kind, 0.15) for _ in range(self.r.randrange(1, 5))]
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


ANY_TYPE = (
    "coalesce({c}, {v}) {o} {v}",
    "nullif({c}, {v}) is null",
    "cast({c} as string) = cast({v} as string)",
    "cast({c} as string) is not null",
    "if({c} = {v}, true, null)",
    "{c} = {v} or {c} is null",
    "{c} <=> null",
    "hash({c}) = hash({v})",
    "{c} {o} {c}",
    "greatest({c}, {v}) = {v}",
)
_ARITHMETIC = (
    "{c} % 2 = 1", "abs({c}) > 1", "-{c} {o} {v}", "{c} * 0 = 0", "cast({c} as double) {o} cast({v} as double)",
    "cast({c} as decimal(38,5)) {o} {v}", "10 / {c} > 1", "try_divide(10, {c}) > 1", "{c} {o} {v} + 0",
    "cast({c} as float) {o} cast({v} as float)", "cast({c} as int) = 1", "try_cast({c} as int) = 1", "sign({c}) = -1",
)  # fmt: skip
COMPUTED: dict[str, tuple[str, ...]] = {
    "boolean": ("not {c}", "{c} is true", "{c} is not false", "{c} = ({v} is not null)", "cast({c} as int) = 1"),
    "int": (*_ARITHMETIC, "cast({c} as bigint) {o} 5", "{c} + 1 {o} {v}", "try_add({c}, 1) {o} {v}"),
    "bigint": (*_ARITHMETIC, "cast({c} as decimal(20,0)) {o} {v}", "try_add({c}, 1) {o} {v}", "{c} + 1 > {v}"),
    "decimal": (*_ARITHMETIC, "cast({c} as int) = 5", "round({c}, 1) {o} {v}", "try_cast({c} as decimal(4,1)) = 5.0"),
    "float": (*_ARITHMETIC, "isnan({c})", "not isnan({c})", "cast({c} as double) {o} cast({v} as double)", "{c} = -{c}"),
    "double": (*_ARITHMETIC, "isnan({c})", "not isnan({c})", "nanvl({c}, 0) {o} 0", "{c} = -{c}", "{c} > 9223372036854775807"),
    "string": (
        "upper({c}) = 'A'", "length({c}) > 16", "substring({c}, 1, 1) = 'a'", "trim({c}) = 'a'", "{c} || 'x' = 'ax'",
        "try_cast({c} as int) = 10", "{c} rlike '^a.*b'", "concat({c}, {c}) < {v}", "lower({c}) {o} {v}",
        "substring({c}, 1, 16) = substring({v}, 1, 16)", "left({c}, 2) = 'ab'", "locate('s', {c}) > 0",
        "try_cast({c} as double) > 1", "cast({c} as int) = 10",
    ),
    "binary": ("length({c}) > 1", "hex({c}) = '61'", "cast({c} as string) = 'a'", "substring({c}, 1, 1) = X'61'"),
    "date": (
        "year({c}) = 2024", "date_add({c}, 1) {o} {v}", "{c} + interval 1 day {o} {v}", "trunc({c}, 'MM') {o} {v}",
        "cast({c} as timestamp) {o} timestamp'2024-03-10 00:00:00'", "month({c}) in (2, 3)", "datediff({c}, {v}) = 0",
        "cast({c} as timestamp_ntz) {o} timestamp_ntz'2024-03-10 00:00:00'", "date_format({c}, 'yyyy') > '1970'",
    ),
    "timestamp": (
        "year({c}) = 2024", "cast({c} as date) {o} date'2024-03-10'", "hour({c}) = 3", "date_trunc('day', {c}) {o} {v}",
        "{c} + interval 1 hour {o} {v}", "unix_micros({c}) > 0", "cast({c} as timestamp_ntz) {o} timestamp_ntz'2024-03-10 03:30:00'",
        "date_trunc('hour', {c}) = {c}", "to_date({c}) = date'2024-11-03'",
    ),
    "timestamp_ntz": (
        "year({c}) = 2024", "cast({c} as date) {o} date'2024-03-10'", "hour({c}) = 2", "date_trunc('day', {c}) = {c}",
        "{c} + interval 1 hour {o} {v}", "cast({c} as timestamp) {o} timestamp'2024-03-10 03:30:00'",
    ),
}  # fmt: skip
NESTED: dict[str, tuple[str, ...]] = {
    "struct": (
        "{c} is null", "{c} = {v}", "{c} <=> {v}", "{c} <> {v}", "{c} in ({v}, null)", "{c}.y like 'a%'",
        "coalesce({c}.x, 0) = 0", "{c}.x + 1 > 1", "({c}).x = 5", "{c} < {v}",
    ),
    "longer struct": ("{c} is null", "{c}.z is null", "{c} <=> {v}", "{c}.z > date'2024-01-01'", "{c}.y like 'a%'"),
    "deep": ("{c}.q is null", "{c}.q.x > 1", "{c}.q.d is not null", "{c} <=> {v}", "{c}.q.x = double('NaN')", "{c}.q <=> null"),
    "array": (
        "size({c}) = 1", "array_contains({c}, 5)", "{c}[0] = 1", "try_element_at({c}, 2) is null", "{c} = array(1)",
        "exists({c}, e -> e > 1)", "{c} < {v}", "forall({c}, e -> e is not null)", "{c} is null", "{c}[1] > 0",
    ),
    "map": ("{c}['a'] = 1", "size({c}) = 0", "map_contains_key({c}, 'b')", "{c}['zz'] is null", "{c} is null",
            f"{{c}}[{quoted('it')}] is null"),
}  # fmt: skip
