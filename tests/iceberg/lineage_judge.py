"""What must be true of row ids, judged without the product: commands as data, and what each does to the rows.

A row that stays, wherever it is moved, keeps its id and the number of its last change; one that is changed keeps its
id and has the number of the commit; one that is new has an id that no row ever had. Tables have the columns `id`
(the key by which rows are followed), `v` and `k`, by which they are partitioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from pyiceberg.table import Table

MODES = ("copy-on-write", "merge-on-read")
COMMANDS = ("insert", "update", "move", "delete", "merge", "rewrite")
OTHERS = ("overwrite", "sort", "manifests", "delete_files", "expire")
"""What is not tried in pairs: rows that give way to new ones, and upkeep that leaves every row as it is."""
COLUMNS = "_row_id, _last_updated_sequence_number, id, v, k"
Values = tuple[str, str]
Read = tuple[int, int, int, str, str]
"""A row as `select COLUMNS` gives it."""


def made(name: str, mode: str) -> str:
    """CREATE TABLE in format version 3."""
    modes = ", ".join(f"'write.{command}.mode'='{mode}'" for command in ("delete", "update", "merge"))
    columns = "id int, v string, k string"
    return (
        f"create table {name} ({columns}) using iceberg partitioned by (k) "
        f"tblproperties ('format-version'='3', {modes})"
    )


def last_number(table: Table) -> int:
    """The sequence number of the last commit."""
    head = table.current_snapshot()
    return 0 if head is None else head.sequence_number or 0


def every_pair(names: Sequence[str]) -> list[str]:
    """A walk in which each name is followed by each name, itself too, once."""
    walk = [each for at, name in enumerate(names) for each in (name, *(x for y in names[at + 1 :] for x in (name, y)))]
    return [*walk, walk[0]]


class Act(NamedTuple):
    """A command: `{t}` is the table, `{s}` what stands before `system`; the rows after it, and which it wrote."""

    text: str
    after: dict[int, Values]
    touched: frozenset[int]


class Walk:
    """Random commands on rows that are known."""

    def __init__(self, seed: int) -> None:
        self.r, self.rows, self.last = Random(seed), dict[int, Values](), 0

    def acts(self, names: Sequence[str]) -> Iterator[Act]:
        """A command of each name, one after the other; the table has rows before the first."""
        for name in ("insert", "insert", *names):
            act = getattr(self, f"_{name}")()
            self.rows = act.after
            yield act

    def random(self, count: int) -> list[str]:
        """So many names, each of `COMMANDS` twice as likely as one of `OTHERS`."""
        return [self.r.choice((*COMMANDS, *COMMANDS, *OTHERS)) for _ in range(count)]

    def _new(self, count: int) -> dict[int, Values]:
        first, self.last = self.last + 1, self.last + count
        return {key: (f"v{key}", self.r.choice("xyz")) for key in range(first, self.last + 1)}

    def _some(self, most: int) -> list[int]:
        return sorted(self.r.sample(sorted(self.rows), min(len(self.rows), self.r.randrange(1, most + 1))))

    def _insert(self) -> Act:
        new = self._new(self.r.randrange(2, 5))
        return Act(f"insert into {{t}} values {_values(new)}", {**self.rows, **new}, frozenset(new))

    def _update(self) -> Act:
        keys = self._some(3)
        new = {key: (f"{self.rows[key][0]}!", self.rows[key][1]) for key in keys}
        return Act(f"update {{t}} set v = concat(v, '!') where {_in(keys)}", {**self.rows, **new}, frozenset(keys))

    def _move(self) -> Act:
        keys, to = self._some(3), self.r.choice("xyz")
        new = {key: (self.rows[key][0], to) for key in keys}
        return Act(f"update {{t}} set k = '{to}' where {_in(keys)}", {**self.rows, **new}, frozenset(keys))

    def _delete(self) -> Act:
        keys = self._some(2)
        left = {key: values for key, values in self.rows.items() if key not in keys}
        return Act(f"delete from {{t}} where {_in(keys)}", left, frozenset())

    def _merge(self) -> Act:
        keys, new = self._some(4), self._new(2)
        gone, changed = keys[:1] if len(keys) > 1 else [], keys[1:] or keys
        source = {**dict.fromkeys(gone, ("gone", "x")), **{key: (f"m{key}", "y") for key in changed}, **new}
        after = {key: values for key, values in {**self.rows, **source}.items() if key not in gone}
        text = (
            f"merge into {{t}} t using (select * from values {_values(source)} as x(id, v, k)) s on t.id = s.id "
            "when matched and s.v = 'gone' then delete when matched then update set * when not matched then insert *"
        )
        return Act(text, after, frozenset((*changed, *new)))

    def _overwrite(self) -> Act:
        to = self.r.choice("xyz")
        new = {key: (v, to) for key, (v, _) in self._new(2).items()}
        left = {key: values for key, values in self.rows.items() if values[1] != to}
        told = ", ".join(f"({key}, '{v}')" for key, (v, _) in new.items())
        return Act(f"insert overwrite {{t}} partition (k = '{to}') values {told}", {**left, **new}, frozenset(new))

    def _rewrite(self) -> Act:
        return self._upkeep("rewrite_data_files", ", options => map('rewrite-all', 'true')")

    def _sort(self) -> Act:
        order = self.r.choice(("id desc", "v", "zorder(id, v)"))
        how = f", strategy => 'sort', sort_order => '{order}', options => map('rewrite-all', 'true')"
        return self._upkeep("rewrite_data_files", how)

    def _manifests(self) -> Act:
        return self._upkeep("rewrite_manifests")

    def _delete_files(self) -> Act:
        return self._upkeep("rewrite_position_delete_files", ", options => map('rewrite-all', 'true')")

    def _expire(self) -> Act:
        return self._upkeep("expire_snapshots", ", older_than => timestamp '2100-01-01'")

    def _upkeep(self, procedure: str, more: str = "") -> Act:
        return Act(f"call {{s}}system.{procedure}(table => '{{t}}'{more})", self.rows, frozenset())


class Judge:
    """Follows the rows of one table from command to command."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, int]] = {}
        self.used: set[int] = set()

    def wrong(self, act: Act, read: Sequence[Read], number: int) -> list[str]:
        """What is not as it must be after a command whose commit has this sequence number."""
        found = {row[2]: (row[0], row[1]) for row in read}
        rows = {key: (v, k) for _, _, key, v, k in read}
        if rows != act.after or len(read) != len(act.after):
            return [f"the rows are {rows}, not {act.after}"]
        ids = [row_id for row_id, _ in found.values()]
        wrong = [] if len(set(ids)) == len(ids) else [f"an id is there twice: {sorted(ids)}"]
        for key, (row_id, last) in found.items():
            old_id, old_last = self.known.get(key, (None, None))
            expected = number if key in act.touched else old_last
            if last != expected:
                wrong.append(f"row {key} was changed by commit {last}, not {expected}")
            if old_id is None and row_id in self.used:
                wrong.append(f"row {key} is new and has the id {row_id} of another")
            elif old_id is not None and row_id != old_id:
                wrong.append(f"row {key} had the id {old_id} and has {row_id}")
        self.known, self.used = found, self.used | set(ids)
        return wrong


def _values(rows: dict[int, Values]) -> str:
    return ", ".join(f"({key}, '{v}', '{k}')" for key, (v, k) in rows.items())


def _in(keys: Sequence[int]) -> str:
    return f"id in ({', '.join(map(str, keys)) or '-1'})"
