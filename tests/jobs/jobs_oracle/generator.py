"""Random jobs files, by seed: two or three jobs, all kinds of statements, all column types, NULLs, partitions."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

from jobs_oracle.grammar import (
    Bare,
    Between,
    Clause,
    Column,
    Compares,
    Distinct,
    File,
    Guard,
    Job,
    Joined,
    Not,
    Null,
    Odd,
    OneOf,
    Predicate,
    Prefix,
    Statement,
    Table,
    Term,
)
from lakeproof.format import Value

CONSTANTS: dict[str, list[Value]] = {
    "int": [1, 2, 5],
    "bigint": [10, 11],
    "double": [0.5, 0.75, 2.0],
    "decimal(9,2)": [Decimal("0.50"), Decimal("0.75"), Decimal("2.00")],
    "string": ["a", "ab", "b"],
    "date": [date(2026, 1, 1), date(2026, 1, 3)],
    "timestamp_ntz": [datetime(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(2026, 1, 2)],
    "boolean": [True, False],
}
OTHERS: dict[str, list[Value]] = {
    "int": [0, 3, 9],
    "bigint": [9, 12, 2**40],
    "double": [0.25, 0.625, 1.0, 3.5],
    "decimal(9,2)": [Decimal("0.25"), Decimal("0.51"), Decimal("1.00"), Decimal("9.99")],
    "string": ["", "aa", "abc", "ac", "zz"],
    "date": [date(2025, 12, 31), date(2026, 1, 2), date(2026, 2, 7)],
    "timestamp_ntz": [datetime(2025, 12, 31, 23), datetime(2026, 1, 1, 6), datetime(2026, 1, 3, 1)],
    "boolean": [],
}
OPERATORS = ("=", "=", "!=", "<", "<=", ">", ">=")
WIDER = 100_000_000
"""From this seed on files have more: keys of any type, doubles beside decimals, DISTINCT FROM, unknown values.

Below it they stay as they were, since tests name seeds.
"""
POLICIES = ("iceberg-spark",) * 5 + ("pyiceberg",) * 2 + ("iceberg-spark-fixed", "lakeproof", "lakeproof")


class Maker:
    """Makes one file."""

    def __init__(self, seed: int, *, tables: int | None = None) -> None:
        self.seed, self.random = seed, Random(seed)
        self.cautious = False
        self.wider = seed >= WIDER
        self.pool = {kind: self.random.sample(values, 2) for kind, values in CONSTANTS.items()}  # so that jobs meet
        dice = self.random.random()
        self.focus = "undelete" if dice < 0.4 else "skew" if dice < 0.6 else ""  # where anomalies are likely
        self.count = tables or (2 if self.random.random() < 0.15 else 1)

    def file(self) -> File:
        """The file of this seed."""
        names = ("orders", "staging")[: self.count]
        self.tables = tuple(self.table(name) for name in names)
        count = self.random.choice((2, 2, 2, 3))
        jobs = [Job(f"job{i}", self.statements(i)) for i in range(1, count + 1)]
        rows: tuple[Any, ...] = ()
        if self.random.random() < 0.2:
            rows = tuple((table.name, (self.row(table),)) for table in self.tables for _ in range(2))
        policy = "iceberg-spark" if self.focus and self.random.random() < 0.8 else self.random.choice(POLICIES)
        return File(self.seed, self.tables, tuple(jobs), policy, rows, self.cautious, self.pool)

    # ------------------------------------------------------------ tables and values

    def table(self, name: str) -> Table:
        kinds = self.random.sample(list(CONSTANTS), self.random.choice((1, 1, 2)))
        if self.count > 1 and name != "orders":
            columns = self.tables_first.columns
        else:
            columns = (Column("id", "int"), *(Column(f"c{i}", kind) for i, kind in enumerate(kinds, 1)))
        modes = [
            (f"write.{what}.mode", self.random.choice(("merge-on-read", "merge-on-read", "copy-on-write")))
            for what in ("delete", "update", "merge")
        ]
        if self.focus == "undelete":
            modes = [(name, "merge-on-read") for name, _ in modes]
        level = self.random.choice(("snapshot", "serializable"))
        level = {"undelete": "snapshot", "skew": "serializable"}.get(self.focus, level)
        levels = [(f"write.{what}.isolation-level", level) for what in ("delete", "update", "merge", "insert")]
        made = Table(name, columns, self.partition(columns), (*modes, *levels))
        self.tables_first: Table = made
        return made

    def partition(self, columns: tuple[Column, ...]) -> tuple[tuple[str, str, str], ...]:
        if self.random.random() < 0.6:
            return ()
        column = self.random.choice(columns)
        if column.type in ("date", "timestamp_ntz"):
            return ((column.name, f"days({column.name})", "day"),)
        if column.name == "id" and self.random.random() < 0.4:
            return (("id", "bucket(4, id)", "bucket[4]"),)
        return ((column.name, column.name, "identity"),)

    def value(self, kind: str, *, null: float = 0.1) -> Value:
        if self.random.random() < null:
            return None
        pool = self.pool[kind] + (CONSTANTS[kind] + OTHERS[kind] if self.random.random() < 0.25 else [])
        return self.random.choice(pool)

    def row(self, table: Table) -> tuple[Value, ...]:
        return tuple(self.value(column.type) for column in table.columns)

    # ------------------------------------------------------------ conditions

    def condition(self, table: Table, qualifier: str = "", depth: int = 0) -> Predicate:
        dice = self.random.random()
        if depth < 2 and dice < 0.2:
            parts = tuple(self.condition(table, qualifier, depth + 1) for _ in range(2))
            return Joined(self.random.choice(("and", "or")), parts)
        if depth < 2 and dice < 0.3:
            return Not(self.condition(table, qualifier, depth + 1))
        return self.leaf(table, qualifier)

    def chance(self, share: float) -> bool:
        """Whether a file of the wider grammar has this part."""
        return self.wider and self.random.random() < share

    def leaf(self, table: Table, qualifier: str) -> Predicate:
        column = self.random.choice(table.columns)
        name, kind, dice = column.name, column.type, self.random.random()
        if self.chance(0.08):
            return Distinct(name, self.random.choice(self.pool[kind]), self.random.random() < 0.5, qualifier)
        if kind == "decimal(9,2)" and self.chance(0.3):
            return Compares(name, self.random.choice(OPERATORS), self.random.choice((0.5, 0.75, 2.0)), qualifier)
        if dice < 0.1:
            return Null(name, self.random.random() < 0.5, qualifier)
        if dice < 0.2:
            values = [self.random.choice(self.pool[kind]), self.value(kind, null=0.2)]
            return OneOf(name, tuple(dict.fromkeys(values)), self.random.random() < 0.4, qualifier)
        if kind == "boolean":
            return Bare(name, qualifier) if dice < 0.7 else Compares(name, "=", False, qualifier)
        if kind == "string" and dice < 0.4:
            return Prefix(name, "a", self.random.random() < 0.4, qualifier)
        if kind == "string" and dice < 0.48:
            self.cautious = True
            return Odd(f"lower({qualifier}{name}) {self.random.choice(('=', '!='))} 'a'")
        if dice < 0.35 and kind != "string":
            low, high = sorted(self.pool[kind])  # type: ignore[type-var]
            return Between(name, low, high, qualifier)
        if dice < 0.42 and kind not in ("string", "boolean"):
            low, high = sorted(self.pool[kind])  # type: ignore[type-var]
            inside = (Compares(name, ">", low, qualifier), Compares(name, "<", high, qualifier))
            return Joined("and", inside)
        value = None if dice > 0.97 else self.random.choice(self.pool[kind])
        return Compares(name, self.random.choice(OPERATORS), value, qualifier)

    def guard(self, table: Table) -> Guard | None:
        if self.random.random() < (0.4 if self.focus == "skew" else 0.85):
            return None
        inner = self.random.choice(self.tables)
        where = self.condition(inner, "x.", 1)
        negative = self.random.random() < 0.4
        dice = self.random.random()
        if dice < 0.3:
            return Guard(inner.name, where, negative, column="id")
        return Guard(inner.name, where, negative, correlated="id" if dice < 0.5 else "")

    # ------------------------------------------------------------ statements

    def statements(self, number: int) -> tuple[Statement, ...]:
        count = 2 if self.random.random() < 0.1 else 1
        made = tuple(self.statement(number if i == 0 else 0) for i in range(count))
        compacted = {one.table for one in made if one.kind == "compact"}
        return made[:1] if len(compacted) > 1 else made  # one job that compacts two tables is refused

    def statement(self, number: int) -> Statement:
        table = self.random.choice(self.tables)
        kinds = {
            "insert": 12,
            "insert select": 8,
            "count": 4,
            "update": 22,
            "delete": 20,
            "merge": 18,
            "overwrite": 6,
            "truncate": 2,
            "compact": 8,
        }
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        if self.focus == "undelete" and number in (1, 2):
            kind = "delete" if number == 1 else self.random.choice(("update", "update", "merge"))
        if kind == "insert" and self.chance(0.4):
            self.cautious = True
            return Statement("feed", table.name, source_columns=table.columns)
        match kind:
            case "insert":
                return Statement(kind, table.name, rows=tuple(self.row(table) for _ in range(self.few())))
            case "insert select" | "count":
                return self.select(kind, table)
            case "update":
                where, guard = self.condition(table, "t."), self.guard(table)
                return Statement(kind, table.name, where, guard, sets=self.sets(table, ()))
            case "delete":
                return Statement(kind, table.name, self.condition(table, "t."), self.guard(table))
            case "merge":
                return self.merge(table)
            case "overwrite":
                return self.overwrite(table)
        return Statement(kind, table.name)

    def few(self) -> int:
        return 2 if self.random.random() < 0.3 else 1

    def term(self, kind: str, columns: tuple[Column, ...], of: str = "t") -> Term:
        fitting = [column for column in columns if column.type == kind]
        if fitting and self.random.random() < 0.6:
            column = self.random.choice(fitting)
            if kind == "string" and self.chance(0.2):
                self.cautious = True
                return Term(column=column.name, of=of, first=True)
            grows = kind in ("int", "bigint") and self.random.random() < 0.3
            return Term(column=column.name, of=of, plus=int(grows))
        return Term(self.value(kind))

    def sets(self, table: Table, source: tuple[Column, ...]) -> tuple[tuple[str, Term], ...]:
        chosen = self.random.sample(table.columns, self.few())
        of_source = bool(source) and self.random.random() < 0.6
        columns, of = (source, "s") if of_source else (table.columns, "t")
        return tuple((column.name, self.term(column.type, columns, of)) for column in chosen)

    def select(self, kind: str, table: Table) -> Statement:
        source = self.random.choice(self.tables)
        where, guard = self.condition(source, "t."), self.guard(source)
        if kind == "count":
            terms = tuple(Term(self.value(column.type)) for column in table.columns)
            return Statement(kind, table.name, where, None, terms=terms, source_table=source.name)
        terms = tuple(self.term(column.type, source.columns) for column in table.columns)
        return Statement(kind, table.name, where, guard, terms=terms, source_table=source.name)

    def overwrite(self, table: Table) -> Statement:
        identity = [name for name, _, transform in table.partition if transform == "identity"]
        if identity and self.random.random() < 0.6:
            value = self.value(table.type_of(identity[0]), null=0)
            rest = [column for column in table.columns if column.name != identity[0]]
            rows = tuple(tuple(self.value(column.type) for column in rest) for _ in range(self.few()))
            return Statement("overwrite", table.name, rows=rows, partition=((identity[0], value),))
        return Statement("overwrite", table.name, rows=tuple(self.row(table) for _ in range(self.few())))

    def merge(self, table: Table) -> Statement:
        named = self.random.random() < 0.4  # columns of the source have names of their own
        columns = tuple(Column(f"s_{c.name}" if named else c.name, c.type) for c in table.columns)
        source_table = ""
        source: tuple[Any, ...] = ()
        dice = self.random.random()
        others = [one for one in self.tables if one.name != table.name]
        if others and dice < 0.5:
            source_table, columns = others[0].name, others[0].columns
        elif dice < 0.8:
            keys = self.random.sample([*self.pool["int"], 3], self.few())
            source = tuple((key, *(self.value(column.type) for column in columns[1:])) for key in keys)
        shape = Table("s", columns)
        key = self.random.randrange(len(columns)) if self.chance(0.4) else 0
        on = ((table.columns[key].name, columns[key].name),)
        more = self.condition(table, "t.", 2) if self.random.random() < 0.15 else None
        texts = [i for i, column in enumerate(columns) if column.type == "string"]
        if texts and self.chance(0.25):
            self.cautious = True
            sides = (f"t.{table.columns[texts[0]].name}", f"s.{columns[texts[0]].name}")
            more = Odd(" = ".join(f"lower({side})" for side in sides))
        clauses = tuple(self.clauses(table, shape))
        return Statement(
            "merge",
            table.name,
            source_table=source_table,
            source_columns=columns,
            source=source,
            on=on,
            on_more=more,
            clauses=clauses,
        )

    def clauses(self, table: Table, source: Table) -> list[Clause]:
        made = []
        if self.random.random() < 0.8:
            then = self.random.choice(("update", "update", "delete"))
            made.append(Clause("matched", then, self.clause_condition(table, source), self.sets(table, source.columns)))
            if self.random.random() < 0.2:
                made.append(Clause("matched", "delete"))
        if self.random.random() < 0.6 or not made:
            sets = tuple((c.name, self.term(c.type, source.columns, "s")) for c in table.columns)
            condition = self.condition(source, "s.", 1) if self.random.random() < 0.25 else None
            made.append(Clause("not matched", "insert", condition, sets))
        if self.random.random() < 0.12:
            condition = self.condition(table, "t.", 1) if self.random.random() < 0.7 else None
            made.append(Clause("not matched by source", "delete", condition))
        return made

    def clause_condition(self, table: Table, source: Table) -> Predicate | None:
        dice = self.random.random()
        if dice < 0.5:
            return None
        return self.condition(source, "s.", 1) if dice < 0.75 else self.condition(table, "t.", 1)


def first_rows(file: File, random: Random) -> dict[str, tuple[tuple[tuple[Value, ...], ...], ...]]:
    """A first table for each table of the file: at most two rows in all, in one data file or in two."""
    found = {}
    left = 2
    for table in file.tables:
        given = tuple(rows for name, rows in file.rows if name == table.name)
        if file.rows:
            found[table.name] = given
            continue
        count = min(left, random.choice((0, 1, 1, 1, 2, 2, 2, 2) if len(file.tables) == 1 else (0, 1, 1, 1, 2)))
        left -= count
        rows = [any_row(table.columns, random, file.constants) for _ in range(count)]
        found[table.name] = (tuple(rows),) if rows and random.random() < 0.5 else tuple((row,) for row in rows)
    return found


def any_row(columns: tuple[Column, ...], random: Random, named: dict[str, list[Value]]) -> tuple[Value, ...]:
    """A row with values that the file names, others, and NULL."""
    return tuple(_any(column.type, random, named) for column in columns)


def _any(kind: str, random: Random, named: dict[str, list[Value]]) -> Value:
    if random.random() < 0.1:
        return None
    return random.choice(named[kind] if random.random() < 0.6 else CONSTANTS[kind] + OTHERS[kind])
