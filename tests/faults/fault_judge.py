"""The judge of a fault run: the rows of the last table, as PyIceberg alone reads them, against what the writers told.

It knows nothing of Lakeproof. A row that was acknowledged is there once; one whose command nobody answered for is there
at most once, whole; one that was refused never. Accounts hold what their ledger says, in every retained snapshot.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fault_history import Record, Told

Row = tuple[int, int, int]
LOSS, DOUBLE, SUM = "loss", "double", "wrong sum"
ALWAYS_SOMETHING = ("insert", "transfer", "overwrite")
"""Commands that cannot find that there is nothing left for them to do."""
UNDELETED, TORN, REFUSED, STALE = "deleted and there", "torn", "refused and there", "stale"


class Layout(NamedTuple):
    """Where which rows lie, and what the accounts began with."""

    accounts: tuple[int, ...]
    start: int
    ledger: int
    journal: tuple[int, ...]
    merged: int
    overwritten: tuple[int, ...]


class Fault(NamedTuple):
    """Something that must not be."""

    kind: str
    told: str


class Table(NamedTuple):
    """The last table: the rows of its head and of every retained snapshot or why they cannot be read, and its tags."""

    head: tuple[Row, ...]
    snapshots: dict[int, tuple[Row, ...] | str]
    tags: frozenset[str]


def judged(told: Told, table: Table, layout: Layout, *, tags_may_go: bool) -> list[Fault]:
    """All that is wrong with a run."""
    faults = [Fault(kind, what) for kind, what in told.seen]
    by_kind: dict[str, list[Record]] = defaultdict(list)
    for record in told.records:
        by_kind[record.kind].append(record)
        if record.how == "nothing" and record.kind in ALWAYS_SOMETHING:
            faults.append(Fault(LOSS, f"{record.name}: it was told as done, and no snapshot has it"))
        if record.how == "raw":
            faults.append(Fault("raw error", f"{record.name}: {record.error}"))
    parts: dict[int, list[Row]] = defaultdict(list)
    for row in table.head:
        parts[row[1]].append(row)
    faults += _accounts(by_kind["transfer"], parts, layout)
    faults += _snapshots(table, layout)
    faults += _journal(by_kind, [row for p in layout.journal for row in parts[p]])
    faults += _merged(by_kind["merge"], parts[layout.merged])
    for p in layout.overwritten:
        faults += _overwritten(p, by_kind, parts[p])
    if not tags_may_go:
        gone = (r for r in by_kind["tag"] if r.how == "nothing" and r.told["tag"] not in table.tags)
        faults += [Fault("tag", f"{record.name} is gone") for record in gone]
    return faults


def _twice(rows: Iterable[Row]) -> Iterator[Fault]:
    for key, count in Counter(row[0] for row in rows).items():
        if count > 1:
            yield Fault(DOUBLE, f"row {key} is there {count} times")


def _accounts(transfers: list[Record], parts: dict[int, list[Row]], layout: Layout) -> Iterator[Fault]:
    lines = {row[0]: row[2] for row in parts[layout.ledger]}
    yield from _twice(parts[layout.ledger])
    owed = dict.fromkeys(layout.accounts, layout.start)
    for record in transfers:
        if record.n in lines:
            owed[record.told["from"]] -= record.told["amount"]
            owed[record.told["to"]] += record.told["amount"]
            if not record.may_have_happened:
                yield Fault(REFUSED, record.name)
            if lines[record.n] != record.told["amount"]:
                yield Fault(SUM, f"{record.name}: its line says {lines[record.n]}")
        elif record.certain:
            yield Fault(LOSS, record.name)
    if strangers := lines.keys() - {record.n for record in transfers}:
        yield Fault(DOUBLE, f"transfers that nobody made: {sorted(strangers)[:5]}")
    yield from _twice(parts[0])
    for key, _, value in parts[0]:
        if owed.get(key) != value:
            yield Fault(SUM, f"account {key} has {value}; its ledger says {owed.get(key)}")
    if missing := set(layout.accounts) - {row[0] for row in parts[0]}:
        yield Fault(LOSS, f"accounts {sorted(missing)}")


def _snapshots(table: Table, layout: Layout) -> Iterator[Fault]:
    for number, rows in table.snapshots.items():
        if isinstance(rows, str):
            yield Fault("unreadable", f"snapshot {number}: {rows}")
            continue
        yield from (Fault(each.kind, f"snapshot {number}: {each.told}") for each in _twice(rows))
        total = sum(row[2] for row in rows if row[1] == 0)
        if total != layout.start * len(layout.accounts):
            yield Fault(SUM, f"snapshot {number} has the sum {total}")


def _journal(by_kind: dict[str, list[Record]], rows: list[Row]) -> Iterator[Fault]:
    yield from _twice(rows)
    there = {row[0]: row[2] for row in rows}
    deletes, updates = _by_id(by_kind["delete"]), _by_id(by_kind["update"])
    known = set()
    for record in by_kind["insert"]:
        ids = record.told["ids"]
        known |= set(ids)
        left = [key for key in ids if key in there]
        gone = [key for key in ids if key not in there]
        if left and not record.may_have_happened:
            yield Fault(REFUSED, record.name)
        lost = [key for key in gone if not any(each.may_have_happened for each in deletes[key])]
        if lost and record.certain:
            yield Fault(LOSS, f"{record.name}: row {lost[0]}")
        elif lost and left:
            yield Fault(TORN, f"{record.name}: row {lost[0]} is missing, row {left[0]} is there")
        for key in left:
            yield from _row(key, there[key], record, deletes[key], updates[key])
    for record in (*by_kind["delete"], *by_kind["update"]):
        if record.how == "nothing" and not _deleted_before(deletes[record.told["id"]], record):
            yield Fault(STALE, f"{record.name} did not find row {record.told['id']}")
    if strangers := there.keys() - known:
        yield Fault(DOUBLE, f"rows that nobody inserted: {sorted(strangers)[:5]}")


def _row(key: int, value: int, insert: Record, deletes: list[Record], updates: list[Record]) -> Iterator[Fault]:
    for record in deletes:
        if record.certain:
            yield Fault(UNDELETED, f"row {key}, {record.name}")
    writes = [insert, *updates]
    yield from _register(f"row {key}", value, writes, lambda record: record.n)


def _register(what: str, value: Any, writes: list[Record], of: Callable[[Record], Any]) -> Iterator[Fault]:
    """The last value is that of a write after which no acknowledged write began."""
    mine = [record for record in writes if of(record) == value and record.may_have_happened]
    if not mine:
        yield Fault(REFUSED if value else LOSS, f"{what} has the value {value}, which nobody wrote")
    elif all(any(later.certain and later.began > record.over for later in writes) for record in mine):
        yield Fault(LOSS, f"{what} has the value of {mine[0].name}; a later write is lost")


def _deleted_before(deletes: list[Record], record: Record) -> bool:
    return any(each.may_have_happened and each.began < record.ended for each in deletes)


def _by_id(records: list[Record]) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        found[record.told["id"]].append(record)
    return found


def _merged(merges: list[Record], rows: list[Row]) -> Iterator[Fault]:
    yield from _twice(rows)
    there = {row[0]: row[2] for row in rows}
    for key, records in _by_id(merges).items():
        inserted = [record for record in records if record.certain and record.told.get("by") != "spark"]
        if len(inserted) > 1:
            yield Fault(DOUBLE, f"row {key} was inserted by {', '.join(each.name for each in inserted[:3])}")
        if key not in there:
            if found := [record for record in records if record.how in ("ok", "nothing")]:
                yield Fault(LOSS, f"row {key} of {found[0].name}")
        elif there[key] not in [record.n for record in records if record.may_have_happened]:
            yield Fault(REFUSED, f"row {key} has the value {there[key]}")


def _overwritten(p: int, by_kind: dict[str, list[Record]], rows: list[Row]) -> Iterator[Fault]:
    """The partition is a register: the rows of one command, or nothing."""
    yield from _twice(rows)
    writes = [each for kind in ("overwrite", "empty") for each in by_kind[kind] if each.told["p"] == p]
    ids = {record.n: sorted(record.told.get("ids", ())) for record in writes}
    now = sorted({row[0] for row in rows})
    if not now and not any(record.certain for record in writes):
        return
    yield from _register(f"partition {p}", now, writes, lambda record: ids[record.n])
