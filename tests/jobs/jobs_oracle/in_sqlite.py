"""What a statement does to rows, asked of SQLite: rows go in with an identity, the statement runs, they come out."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from jobs_oracle.grammar import Column, File, Statement, Table, lite, loaded, stored
from lakeproof.format import Value

Values = tuple[Value, ...]
Identified = tuple[object, Values]
"""A row with its identity."""


class Effect(NamedTuple):
    """New values by identity (`None`: gone), the rows that are new, and those for which a MERGE inserts none."""

    changed: dict[object, Values | None]
    added: tuple[Values, ...]
    matched: frozenset[object] = frozenset()


class Engine:
    """One in-memory database with the file's tables; answers are remembered."""

    def __init__(self, file: File) -> None:
        self.tables = {table.name: table for table in file.tables}
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("pragma case_sensitive_like = on")
        for table in file.tables:
            self._create(table.name, table.columns)
        self.known: dict[object, Effect | None] = {}

    def _create(self, name: str, columns: tuple[Column, ...]) -> None:
        self.connection.execute(f"create table {name} (_id integer primary key, {', '.join(c.name for c in columns)})")

    def effect(
        self, one: Statement, rows: dict[str, tuple[Identified, ...]], source: tuple[Values, ...]
    ) -> Effect | None:
        """What the statement does; `None`: two source rows match one target row, so it fails."""
        ordered = {name: sorted(held, key=lambda pair: (repr(pair[1]), repr(pair[0]))) for name, held in rows.items()}
        shape = tuple((name, tuple(values for _, values in held)) for name, held in ordered.items())
        key = (one, shape, source)
        if key not in self.known:
            self.known[key] = self._run(
                one, {name: [values for _, values in held] for name, held in ordered.items()}, source
            )
        found = self.known[key]
        if found is None:
            return None
        names = [identity for identity, _ in ordered[one.table]]
        changed = {names[int(str(i))]: new for i, new in found.changed.items()}
        return Effect(changed, found.added, frozenset(names[int(str(i))] for i in found.matched))

    # ------------------------------------------------------------ one run

    def _run(self, one: Statement, rows: dict[str, list[Values]], source: tuple[Values, ...]) -> Effect | None:
        for name, held in rows.items():
            self.connection.execute(f"delete from {name}")
            marks = ", ".join("?" * (len(self.tables[name].columns) + 1))
            self.connection.executemany(
                f"insert into {name} values ({marks})", [(i, *map(stored, row)) for i, row in enumerate(held)]
            )
        if one.kind == "feed":
            return Effect({}, source)
        if one.kind == "merge":
            return self._merge(one, rows, source)
        before = len(rows[one.table])
        for text in statements(one, self.tables[one.table]):
            self.connection.execute(text)
        after = self._read(one.table)
        changed: dict[object, Values | None] = {}
        for i in range(before):
            if after.get(i) is None:
                changed[i] = None
            elif one.kind == "update" and i in self._hit:
                changed[i] = after[i]
        return Effect(changed, tuple(row for i, row in after.items() if i >= before))

    def _read(self, name: str) -> dict[int, Values]:
        table = self.tables[name]
        found = self.connection.execute(f"select * from {name} order by _id")
        return {row[0]: tuple(loaded(v, c.type) for v, c in zip(row[1:], table.columns, strict=True)) for row in found}

    @property
    def _hit(self) -> set[int]:
        return {row[0] for row in self.connection.execute("select _id from hit")}

    # ------------------------------------------------------------ MERGE

    def _merge(self, one: Statement, rows: dict[str, list[Values]], source: tuple[Values, ...]) -> Effect | None:
        run = self.connection.execute
        run("drop table if exists incoming")
        self._create("incoming", one.source_columns)
        held = tuple(rows[one.source_table]) if one.source_table else source
        marks = ", ".join("?" * (len(one.source_columns) + 1))
        self.connection.executemany(
            f"insert into incoming values ({marks})", [(i, *map(stored, row)) for i, row in enumerate(held)]
        )
        table = self.tables[one.table]
        on = " and ".join(f"t.{left} = s.{right}" for left, right in one.on)
        on += f" and {one.on_more.lite()}" if one.on_more is not None else ""
        changed: dict[object, Values | None] = {}
        inserts = any(clause.when == "not matched" for clause in one.clauses)
        matched: set[object] = set()
        acting = [clause for clause in one.clauses if clause.when == "matched"]
        only_removes = len(acting) == 1 and acting[0].then == "delete" and acting[0].condition is None
        met: set[object] = set()
        for target, origin, number in run(
            f"select t._id, s._id, {_which(one, 'matched')} from {one.table} t join incoming s on {on} order by 1, 2"
        ).fetchall():
            if inserts:
                matched.add(target)
            if target in met and acting and not only_removes:
                return None  # Spark refuses a target row that two source rows match, whatever the conditions say
            met.add(target)
            if number is not None:
                changed[target] = self._updated(one, table, number, target, origin)
        alone = f"not exists (select 1 from incoming s where {on})"
        number_of = _which(one, "not matched by source")
        for target, number in run(f"select t._id, {number_of} from {one.table} t where {alone}").fetchall():
            if number is not None:
                changed[target] = self._updated(one, table, number, target, None)
        return Effect(changed, self._inserted(one, table, on), frozenset(matched))

    def _updated(self, one: Statement, table: Table, number: int, target: int, origin: int | None) -> Values | None:
        clause = one.clauses[number]
        if clause.then == "delete":
            return None
        sets = dict(clause.sets)
        picked = ", ".join(sets[c.name].lite() if c.name in sets else f"t.{c.name}" for c in table.columns)
        also = (
            f", incoming s where t._id = {target} and s._id = {origin}"
            if origin is not None
            else f" where t._id = {target}"
        )
        row = self.connection.execute(f"select {picked} from {one.table} t{also}").fetchone()
        return tuple(loaded(value, column.type) for value, column in zip(row, table.columns, strict=True))

    def _inserted(self, one: Statement, table: Table, on: str) -> tuple[Values, ...]:
        added = []
        where = f"not exists (select 1 from {one.table} t where {on})"
        picks = self.connection.execute(
            f"select s._id, {_which(one, 'not matched')} from incoming s where {where} order by 1"
        ).fetchall()
        for origin, number in picks:
            if number is None:
                continue
            sets = dict(one.clauses[number].sets)
            picked = ", ".join(sets[c.name].lite() if c.name in sets else "null" for c in table.columns)
            row = self.connection.execute(f"select {picked} from incoming s where s._id = {origin}").fetchone()
            added.append(tuple(loaded(value, c.type) for value, c in zip(row, table.columns, strict=True)))
        return tuple(added)


def _which(one: Statement, when: str) -> str:
    """The number of the first clause of this kind whose condition is true."""
    said = [
        f"when {clause.condition.lite() if clause.condition is not None else 'true'} then {number}"
        for number, clause in enumerate(one.clauses)
        if clause.when == when
    ]
    return f"case {' '.join(said)} end" if said else "null"


def statements(one: Statement, table: Table) -> list[str]:
    """The statement as SQLite runs it, noting first which rows an UPDATE hits."""
    columns = ", ".join(table.names())
    where = f"({one.where.lite()})" + (f" and {one.guard.said(one.guard.where.lite())}" if one.guard else "")
    rows = ", ".join("(" + ", ".join(lite(value) for value in _full(one, row, table)) + ")" for row in one.rows)
    match one.kind:
        case "insert":
            return [f"insert into {table.name} ({columns}) values {rows}"]
        case "insert select" | "count":
            terms = [term.lite() for term in one.terms]
            terms = ["count(*)", *terms[1:]] if one.kind == "count" else terms
            query = f"select {', '.join(terms)} from {one.source_table} t where {where}"
            return [f"insert into {table.name} ({columns}) {query}"]
        case "update":
            sets = ", ".join(f"{column} = {term.lite()}" for column, term in one.sets)
            note = ["create temp table if not exists hit (_id)", "delete from hit"]
            return [
                *note,
                f"insert into hit select _id from {table.name} t where {where}",
                f"update {table.name} as t set {sets} where {where}",
            ]
        case "delete":
            return [f"delete from {table.name} as t where {where}"]
        case "truncate":
            return [f"delete from {table.name}"]
        case "overwrite":
            fixed = " and ".join(f"{column} = {lite(value)}" for column, value in one.partition) or "true"
            return [
                f"delete from {table.name} where {fixed}",
                f"insert into {table.name} (_id, {columns}) {_numbered(rows, columns)}",
            ]
    return []


def _numbered(rows: str, columns: str) -> str:
    """New rows with identities that no old row has."""
    return f"select 1000 + row_number() over (), * from (values {rows})"


def _full(one: Statement, row: Values, table: Table) -> Values:
    fixed = dict(one.partition)
    rest = iter(row)
    return tuple(fixed[c.name] if c.name in fixed else next(rest) for c in table.columns)
