"""Random statements over a table's columns: queries, DELETE, UPDATE and MERGE."""

from __future__ import annotations

from random import Random
from typing import Literal

from column_kinds import FIELDS, KINDS, SCALARS, Column
from random_predicates import TABLE, Asking, Leaf, said
from steps import Assignment, Clause, Copy, Delete, Merge, Names, Read, Statement, Update

Columns = tuple[Column, ...]
Mix = Literal["all", "reads", "commands"]
READS = (
    "select id from {t} where {p}",
    "select id from {t} where {p}",
    "select id from {t} where {p}",
    "select count(*) from {t} where {p}",
    "select count(*) from {t} where {p}",
    "select count(*) n, count({c}) from {t} where {p}",
    "select min({m}), max({m}) from {t} where {p}",
    "select min({m}) from {t}",
    "select max({m}), count(*), count({m}) from {t}",
    "select count(*) from {t}",
    "with w as (select * from {t} where {p}) select count(*) from w where w.id > 3",
    "select count(*) from (select id n from {t} where {p}) where n < 9",
    "select {q}id, {q}{c} from {t} where {p}",
    "select {q}* from {t} where {p}",
    "select distinct {c} from {t} where {p}",
    "select count(1), count(id) filter (where {p}) from {t}",
    "select count(*) filter (where {p}) from {t}",
)


COMPUTED_VALUES = (
    "coalesce({c}, {v})",
    "case when {p} then {c} else {v} end",
    "nullif({c}, {v})",
    "if({p}, {c}, null)",
)


def random_statement(r: Random, columns: Columns, rows: int, mix: Mix = "all") -> Statement:
    """One statement."""
    chance = r.uniform(0.6, 1) if mix == "commands" else r.random()
    if chance < 0.6 or mix == "reads":
        return _read(r, columns)
    if chance < 0.72:
        return _delete(r, columns)
    if chance < 0.85:
        return _update(r, columns)
    if chance < 0.88:
        asking = Asking(r, columns)
        return Copy(asking.predicate(), tuple(asking.parameters), _names(r))
    return _Merging(r, columns, rows).merge()


def _names(r: Random) -> Names:
    alias = r.choice(("", "", "z", "`Q r`"))
    return Names(alias, r.choice((1, 1, 2, 3)), r.choice((1, 1, 2, 3)))


def _read(r: Random, columns: Columns) -> Read:
    asking = Asking(r, columns)
    comparable = [c.sql for c in columns if c.kind in SCALARS] + [
        f"{c.sql}.{path}" for c in columns for path, _ in FIELDS.get(c.kind, ())
    ]
    groupable = [c.sql for c in columns if "map" not in c.of.type]
    text = r.choice(READS)
    name = r.choice(groupable if "distinct" in text else [c.sql for c in columns])
    text = text.replace("{m}", r.choice(comparable)).replace("{c}", name)
    names = _names(r)._replace(alias="") if "from (" in text or "with " in text else _names(r)
    asking.subqueries = "filter (" not in text
    predicate = asking.predicate()
    return Read(text, predicate, tuple(asking.parameters), names)


def _delete(r: Random, columns: Columns) -> Delete:
    asking = Asking(r, columns)
    predicate = asking.predicate()
    if r.random() < 0.7:  # most of the rows live on
        predicate = Leaf(f"id % {r.randrange(2, 5)} = 1 and ({said(predicate)})") if r.random() < 0.4 else predicate
    return Delete(predicate, tuple(asking.parameters), _names(r))


def value_of(asking: Asking, kind: str, *, whole: bool = True) -> str:
    """A value for a column of the kind (or a field of one): of its type, of another, or of the wrong one."""
    r, of = asking.r, KINDS[kind]
    same = [name for name, its in asking.found if its is of]
    chance = r.random()
    if chance < 0.25 and same:
        return r.choice(same)
    if chance < 0.35:
        return r.choice(("null", "default" if whole else "null"))
    if chance < 0.45 and of.strange:
        return r.choice(of.strange)
    if chance < 0.5 and not asking.prefix:
        return asking.parameter()
    if chance < 0.6 and asking.found:
        return r.choice(asking.found)[0]
    if chance < 0.7 and same:
        form = r.choice(COMPUTED_VALUES).replace("{c}", r.choice(same)).replace("{v}", of.value(r))
        return form.replace("{p}", asking.leaf())
    if chance < 0.76 and asking.subqueries and same:
        return f"(select {r.choice(('max', 'min'))}(o.{same[0]}) from {TABLE} o)"
    return of.value(r) if r.random() < 0.6 else r.choice(of.values)


def _assignments(asking: Asking, columns: Columns) -> tuple[Assignment, ...]:
    r, made = asking.r, []
    for column in r.sample(list(columns), min(len(columns), r.choice((1, 1, 2, 3)))):
        paths = FIELDS.get(column.kind, ())
        if paths and r.random() < 0.6:
            path, kind = r.choice(paths)
            made.append(Assignment(column, path, value_of(asking, kind, whole=False)))
        elif column.name == "id":
            own = f"{asking.prefix}id"
            made.append(Assignment(column, "", r.choice((f"{own} + 100", own, "'7'", "null", f"{own} + 0.0"))))
        else:
            made.append(Assignment(column, "", value_of(asking, column.kind)))
        if r.random() < 0.03:
            made.append(made[-1])
    return tuple(made)


def _update(r: Random, columns: Columns) -> Update:
    asking = Asking(r, columns)
    assignments = _assignments(asking, columns)
    predicate = None if r.random() < 0.1 else asking.predicate()
    return Update(assignments, predicate, tuple(asking.parameters), _names(r))


class _Merging:
    """Makes up a MERGE: the source has a row for some ids, and some that the table has not."""

    def __init__(self, r: Random, columns: Columns, rows: int) -> None:
        self.r, self.columns, self.rows = r, columns, rows

    def merge(self) -> Merge:
        r = self.r
        whole = r.random() < 0.5
        given = self.columns if whole else self._some()
        source = self._from_values(given) if r.random() < 0.75 else self._from_table(given)
        other = [c for c in given if c.kind in SCALARS and c.name != "id"]
        on = "t.id = s.id"
        if other and r.random() < 0.25:
            name = r.choice(other).sql
            on = r.choice(
                (
                    f"t.id = s.id and t.{name} <=> s.{name}",
                    f"t.{name} = s.{name}",
                    f"t.id = s.id and t.{name} > s.{name}",
                )
            )
        return Merge(source, on, self._clauses(given, whole=whole), given)

    def _some(self) -> Columns:
        rest = [column for column in self.columns if column.name != "id"]
        chosen = self.r.sample(rest, self.r.randrange(len(rest) + 1))
        return (next(c for c in self.columns if c.name == "id"), *chosen)

    def _from_values(self, given: Columns) -> str:
        r = self.r
        ids = r.sample(range(1, self.rows + 6), min(self.rows + 5, r.randrange(1, 6)))
        if r.random() < 0.1:
            ids.append(ids[0])
        rows = []
        for number in ids:
            values = [str(number) if c.name == "id" else c.of.value(r) for c in given]
            rows.append(f"({', '.join(values)})")
        return f"(select * from values {', '.join(rows)} as v({', '.join(c.sql for c in given)}))"

    def _from_table(self, given: Columns) -> str:
        listed = ", ".join(f"id + {self.r.choice((0, 0, 1, 50))} as id" if c.name == "id" else c.sql for c in given)
        return f"(select {listed} from {TABLE} where id % {self.r.randrange(1, 4)} = 0)"

    def _clauses(self, given: Columns, *, whole: bool) -> tuple[Clause, ...]:
        r = self.r
        made: list[Clause] = []
        for when in ("matched", "not matched", "not matched by source"):
            if r.random() < (0.35, 0.25, 0.7)[("matched", "not matched", "not matched by source").index(when)]:
                continue
            for number in range(r.choice((1, 1, 2))):
                made.append(self._clause(when, given, whole=whole, conditional=number == 0 and r.random() < 0.5))
                if made[-1].condition is None:
                    break
        return tuple(made) or (Clause("matched", "delete"),)

    def _clause(self, when: str, given: Columns, *, whole: bool, conditional: bool) -> Clause:
        r = self.r
        asking = self._asking(when, given)
        condition = asking.predicate(r.randrange(2)) if conditional else None
        if when == "not matched":
            if whole and r.random() < 0.5:
                return Clause(when, "insert", condition)
            return Clause(when, "insert", condition, self._inserted(asking))
        if r.random() < 0.35:
            return Clause(when, "delete", condition)
        if when == "matched" and whole and r.random() < 0.4:
            return Clause(when, "update", condition)
        return Clause(when, "update", condition, _assignments(asking, self.columns))

    def _asking(self, when: str, given: Columns) -> Asking:
        """Conditions and values ask one side by its name; of a pair, either."""
        side = {"not matched": "s", "not matched by source": "t"}.get(when) or self.r.choice("st")
        return Asking(self.r, given if side == "s" else self.columns, prefix=f"{side}.")

    def _inserted(self, asking: Asking) -> tuple[Assignment, ...]:
        chosen = [c for c in self.columns if c.name == "id" or self.r.random() < 0.7]
        return tuple(Assignment(c, "", "s.id" if c.name == "id" else value_of(asking, c.kind)) for c in chosen)
