"""Random lives of tables: made, filled, altered, asked and changed."""

from __future__ import annotations

from random import Random

from column_kinds import KINDS, SCALARS, Column
from random_statements import Mix, random_statement
from steps import Alter, Create, Episode, Insert, Step

NAMES = ("a", "b", "x", "y", "k", "s", "val", "w1", "w2", "w3", "c.d", "größe", "Mixed Case", "order", "b`q")
MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")
ZONES = ("UTC", "America/New_York")


def random_episode(seed: int, statements: int = 16, mix: Mix = "all", version: int = 2) -> Episode:
    """The life of one table with so many statements after its first rows: all kinds, or only some.

    In format version 3 its columns have defaults, too; the rest is the same for every version.
    """
    return Life(seed, mix, version).episode(statements)


class Life:
    """What is known of the table while its life is made up."""

    def __init__(self, seed: int, mix: Mix, version: int) -> None:
        self.seed, self.mix, self.r, self.rows = seed, mix, Random(seed), 0
        self.version, self.of_defaults = version, Random(f"defaults {seed}")
        self.columns = self._columns()
        self.partitions: tuple[str, ...] = ()
        self.free = [name for name in NAMES if name not in [column.name for column in self.columns]]

    def _columns(self) -> tuple[Column, ...]:
        r = self.r
        kinds = r.sample(list(KINDS), r.randrange(3, 7))
        if r.random() < 0.3:
            kinds.append(r.choice(kinds))
        plain, odd = list(NAMES[:7]), list(NAMES[10:])
        names = r.sample(plain, len(plain))
        if r.random() < 0.1:
            names[r.randrange(3)] = r.choice(odd)
        required = r.random() < 0.2
        first = Column("id", r.choice(("int", "bigint")), required)
        return (first, *(Column(name, kind) for name, kind in zip(names, kinds, strict=False)))

    def episode(self, statements: int) -> Episode:
        r = self.r
        steps: list[Step] = [self._create(), self.insert(), self.insert()]
        if r.random() < 0.5:
            for _ in range(r.randrange(1, 4)):
                steps += self._alter()
            steps.append(self.insert())
        if r.random() < 0.5:
            steps.append(self.insert())
        done = 0
        while done < statements:
            chance = r.random()
            if chance < 0.06:
                steps += self._alter()
            elif chance < 0.14:
                steps.append(self.insert())
            else:
                steps.append(random_statement(r, self.columns, self.rows, self.mix))
                done += 1
        return Episode(self.seed, r.random() < 0.7, r.choice(ZONES), tuple(steps))

    def _create(self) -> Create:
        r = self.r
        count = r.choice((0, 0, 1, 1, 1, 2))
        for _ in range(count):
            field = self._transform()
            if field and field not in self.partitions:
                self.partitions += (field,)
        modes = tuple((mode, r.choice(("merge-on-read", "copy-on-write"))) for mode in MODES)
        first, *rest = self.columns
        self.columns = (first, *(one._replace(default=self._default(one.kind, 0.3)) for one in rest))
        return Create(self.columns, self.partitions, modes, self.version)

    def _default(self, kind: str, chance: float) -> str:
        """A default for a column of this kind, or none."""
        r = self.of_defaults
        if self.version < 3 or kind not in SCALARS or r.random() > chance:
            return ""
        values = [value for value in KINDS[kind].values if "N" not in value.upper() or kind not in ("float", "double")]
        return f"cast({r.choice(values)} as {KINDS[kind].type})"

    def _transform(self) -> str | None:
        used = " ".join(self.partitions)
        able = [column for column in self.columns if column.of.transforms and f"{column.sql})" not in f"{used})"]
        if not able:
            return None
        column = self.r.choice(able)
        return self.r.choice(column.of.transforms).replace("{c}", column.sql)

    def insert(self) -> Insert:
        """A few rows; some columns have one value in all of them, so that files can be told apart."""
        r = self.r
        count = r.randrange(1, 8)
        same = {column.name: column.of.value(r) for column in self.columns if r.random() < 0.35}
        made = []
        for _ in range(count):
            self.rows += 1
            made.append(tuple(self._value(column, same) for column in self.columns))
        return self._partly(Insert(tuple(made)))

    def _partly(self, insert: Insert) -> Insert:
        """Where columns have defaults, some are left out, or DEFAULT is said of them."""
        r = self.of_defaults
        if not any(column.default for column in self.columns) or r.random() < 0.4:
            return insert
        at = [number for number, one in enumerate(self.columns) if one.required or r.random() < 0.6]
        named = tuple(self.columns[number] for number in at)
        said = [
            tuple("default" if r.random() < 0.2 and not self.columns[n].required else row[n] for n in at)
            for row in insert.rows
        ]
        return insert._replace(rows=tuple(said), named=named) if at else insert

    def _value(self, column: Column, same: dict[str, str]) -> str:
        return str(self.rows) if column.name == "id" else same.get(column.name) or column.of.value(self.r)

    def _alter(self) -> list[Step]:
        ways = (
            self._add,
            self._add,
            self._rename,
            self._drop,
            self._widen,
            self._move,
            self._repartition,
            self._grow,
            self._compact,
        )
        way = self.r.choice(ways)
        if self.version >= 3 and self.of_defaults.random() < 0.2:
            way = self._set_default
        made = way()  # one alone: a way takes from the free names, also where nobody goes it
        if made is None:
            return []
        self.columns = made.columns
        return [made]

    def _add(self) -> Alter | None:
        if not self.free:
            return None
        new = Column(self.free.pop(0), self.r.choice(list(KINDS)))
        new = new._replace(default=self._default(new.kind, 0.7))
        after = self.r.choice(self.columns)
        place = self.r.choice(("", " first", f" after {after.sql}"))
        at = {"": len(self.columns), " first": 0}.get(place, self.columns.index(after) + 1)
        columns = (*self.columns[:at], new, *self.columns[at:])
        values = [column.sql for column in columns]
        values[at] = new.default or f"cast(null as {new.of.type})"
        return Alter(f"add column {new.ddl}{place}", columns, tuple(values))

    def _set_default(self) -> Alter | None:
        able = [column for column in self.columns if column.kind in SCALARS and column.name != "id"]
        if not able:
            return None
        old = self.of_defaults.choice(able)
        new = old._replace(default=self._default(old.kind, 0.7))
        columns = tuple(new if column is old else column for column in self.columns)
        said = f"set default {new.default}" if new.default else "drop default"
        return Alter(f"alter column {old.sql} {said}", columns, tuple(column.sql for column in columns))

    def _unused(self) -> list[Column]:
        """Columns that no partitioning was ever made of."""
        used = " ".join(self.partitions)
        return [one for one in self.columns if one.name != "id" and f"{one.sql})" not in used and one.sql not in used]

    def _rename(self) -> Alter | None:
        if not self._unused() or not self.free:
            return None
        old = self.r.choice(self._unused())
        new = old._replace(name=self.free.pop(0))
        self.free.append(old.name)  # a name that comes back must not bring the old values
        columns = tuple(new if column is old else column for column in self.columns)
        return Alter(f"rename column {old.sql} to {new.sql}", columns, tuple(column.sql for column in self.columns))

    def _drop(self) -> Alter | None:
        if len(self.columns) < 4 or not self._unused():
            return None
        old = self.r.choice(self._unused())
        self.free.insert(0, old.name)  # the next column of this name must not show its values
        columns = tuple(column for column in self.columns if column is not old)
        return Alter(f"drop column {old.sql}", columns, tuple(column.sql for column in columns))

    def _widen(self) -> Alter | None:
        able = [column for column in self.columns if column.of.wider and "truncate" not in " ".join(self.partitions)]
        if not able:
            return None
        old = self.r.choice(able)
        new = old._replace(kind=old.of.wider)
        columns = tuple(new if column is old else column for column in self.columns)
        values = tuple(f"cast({c.sql} as {new.of.type})" if c is new else c.sql for c in columns)
        return Alter(f"alter column {old.sql} type {new.of.type}", columns, values)

    def _move(self) -> Alter:
        moved = self.r.choice(self.columns)
        rest = [column for column in self.columns if column is not moved]
        at = self.r.randrange(len(rest) + 1)
        place = "first" if at == 0 else f"after {rest[at - 1].sql}"
        columns = (*rest[:at], moved, *rest[at:])
        return Alter(f"alter column {moved.sql} {place}", columns, tuple(column.sql for column in columns))

    def _repartition(self) -> Alter | None:
        values = tuple(column.sql for column in self.columns)
        if self.partitions and self.r.random() < 0.4:
            gone = self.r.choice(self.partitions)
            return Alter(f"drop partition field {gone}", self.columns, values)
        field = self._transform()
        if field is None or field in self.partitions:
            return None
        self.partitions += (field,)
        return Alter(f"add partition field {field}", self.columns, values)

    def _compact(self) -> Alter:
        return Alter(
            "call system.rewrite_data_files('{t}')", self.columns, tuple(column.sql for column in self.columns)
        )

    def _grow(self) -> Alter | None:
        able = [column for column in self.columns if column.kind == "struct"]
        if not able:
            return None
        old = self.r.choice(able)
        new = old._replace(kind="longer struct")
        columns = tuple(new if column is old else column for column in self.columns)
        fields = f"'x', {old.sql}.x, 'y', {old.sql}.y, 'z', cast(null as date)"
        grown = f"if({old.sql} is null, null, named_struct({fields}))"
        values = tuple(grown if column is new else column.sql for column in columns)
        return Alter(f"add column {old.sql}.z date", columns, values)
