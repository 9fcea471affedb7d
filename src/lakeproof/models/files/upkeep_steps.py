"""Upkeep, phase by phase as `commit/upkeep/` says: expiry, orphans, DROP, and a table that a query makes."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.checker.model import Outcome
from lakeproof.commit.upkeep import (
    COMMIT,
    LIST,
    LOAD,
    REMOVE,
    Asserts,
    UpkeepPhase,
    WhenMissing,
    only_theirs,
    refs_stand,
    unneeded,
)
from lakeproof.models.files.steps import FileStep, moved, young
from lakeproof.models.files.world import (
    AT_REST,
    DATA,
    LISTS,
    MANIFESTS,
    METADATA,
    NEIGHBOUR,
    Data,
    Meta,
    Own,
    Setup,
    Shared,
    Snap,
    Upkeep,
    phases_of,
)

WORK = ("expiry", "orphans", "drop", "creation")


def begin(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Somebody begins to expire snapshots, to remove orphans, to drop the table or to make it by a query."""
    if own != AT_REST:
        return
    for what in WORK:
        if setup.may(shared, what) and (shared.table is None) == (what == "creation"):
            number = shared.started + 1 if what == "creation" else 0
            after = shared.spend(what)._replace(upkeep=shared.upkeep + 1, started=max(shared.started, number))
            yield Outcome(after, Upkeep(what, number=number), label=what, marks=(f"{what} begins",))


def go_on(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Upkeep does what comes next."""
    if not isinstance(own, Upkeep) or shared.violated:
        return
    phases = phases_of(setup, own.what)
    if own.phase == len(phases):
        done = shared._replace(upkeep=shared.upkeep - 1)
        yield Outcome(done, AT_REST, marks=(f"{own.what} ends",))
        return
    phase = phases[own.phase]
    for after, mine in _done(setup, shared, own, phase):
        yield Outcome(after, mine, moved(shared, after), label=f"{own.what}: {phase}", marks=_marks(own, phase))


def _marks(own: Upkeep, phase: UpkeepPhase) -> tuple[str, ...]:
    return (f"{own.what} removes a file",) if phase is REMOVE and own.removes else ()


def _done(setup: Setup, shared: Shared, own: Upkeep, phase: UpkeepPhase) -> Iterator[tuple[Shared, Own]]:
    further = own._replace(phase=own.phase + 1)
    if own.what == "creation":
        yield from _created(setup, shared, own, phase)
    elif phase is LIST:
        listed = tuple(path for path in shared.store if not young(setup, shared, path))
        yield shared, _with_orphans(setup, further._replace(listed=listed))
    elif phase is REMOVE:
        yield shared.without(own.removes), further
    elif shared.table is None:
        yield shared._replace(upkeep=shared.upkeep - 1), AT_REST
    elif phase is LOAD:
        yield shared, _loaded(setup, shared.table, further)
        if own.what == "orphans":
            yield from _loaded_slowly(setup, shared, shared.table, further)
    elif phase is COMMIT:
        yield _committed(setup, shared, shared.table, further)


def _with_orphans(setup: Setup, own: Upkeep) -> Upkeep:
    """What is to be removed, when the folder was listed and the metadata loaded."""
    removes = unneeded(own.listed, own.needed) if own.listed and own.needed else ()
    if setup.rules.upkeep.looks_for_neighbours and NEIGHBOUR in removes:
        return own._replace(removes=())
    return own._replace(removes=removes)


def _loaded(setup: Setup, table: Meta, own: Upkeep) -> Upkeep:
    """What upkeep decides by the metadata that it has read."""
    if own.what == "orphans":
        return _with_orphans(setup, own._replace(needed=tuple(sorted(table.needed))))
    if own.what == "drop":
        return own._replace(base=table, removes=tuple(sorted(table.needed)))
    kept = [s for s in table.snapshots if s == table.head or s.id in table.tags]
    expired = {path for s in table.snapshots if s not in kept for path in s.named}
    retained = {path for s in kept for path in s.named}
    return own._replace(base=table, removes=only_theirs(expired, retained))


def _loaded_slowly(setup: Setup, shared: Shared, table: Meta, own: Upkeep) -> Iterator[tuple[Shared, Own]]:
    """The metadata was read a while ago, and its manifests are opened now: some may have been expired since."""
    if own.base is None:
        yield shared, own._replace(phase=own.phase - 1, base=table)
        return
    store = {*shared.store}
    gone = [s for s in own.base.snapshots if s.list not in store]
    if gone and setup.rules.upkeep.when_missing is WhenMissing.SKIP:
        seen = own.base._replace(snapshots=tuple(s for s in own.base.snapshots if s not in gone))
        yield shared, _with_orphans(setup, own._replace(needed=tuple(sorted(seen.needed)), base=None))
    elif not gone:
        yield shared, _with_orphans(setup, own._replace(needed=tuple(sorted(own.base.needed)), base=None))


def _stands(asserts: Asserts, planned: Meta, now: Meta) -> bool:
    """What the request asks of the metadata that it replaces."""
    if asserts is Asserts.REFS:
        return refs_stand(planned.refs, now.refs)
    return asserts is Asserts.NOTHING or planned.refs.get("main") == now.refs.get("main")


def _committed(setup: Setup, shared: Shared, table: Meta, own: Upkeep) -> tuple[Shared, Own]:
    """The expired snapshots, or the table, leave the catalog; whoever finds other refs begins again."""
    upkeep = setup.rules.upkeep
    base = own.base
    if own.what == "drop":
        same = base is not None and (upkeep.drop_asserts is Asserts.NOTHING or base.file == table.file)
        if not same:
            return shared, Upkeep("drop")
        meant = {row for snapshot in base.snapshots for row in snapshot.rows} if base is not None else set()
        return shared._replace(table=None, dropped=tuple(sorted({*shared.dropped, *meant}))), own
    if base is None or not _stands(upkeep.expiry_asserts, base, table):
        return shared, Upkeep("expiry")
    kept = {s.id for s in base.snapshots if s == base.head or s.id in base.tags}
    planned = {s.id for s in base.snapshots} - kept
    staying = tuple(s for s in table.snapshots if s.id not in planned)
    file = f"{METADATA}-expiry-{shared.used('expiry')}-{table.file}"
    tags = tuple(tag for tag in table.tags if tag not in planned)
    after = table._replace(file=file, snapshots=staying, tags=tags, log=(*table.log, table.file))
    lost_tag = ("tags_stay",) if tags != table.tags else ()
    return shared.with_files((file,))._replace(table=after, violated=(*shared.violated, *lost_tag)), own


def _created(setup: Setup, shared: Shared, own: Upkeep, phase: UpkeepPhase) -> Iterator[tuple[Shared, Own]]:
    """CREATE TABLE … AS SELECT: its query may fail while it writes."""
    further = own._replace(phase=own.phase + 1)
    data, manifests, listed = (f"{DATA}-{own.number}", *(f"{kind}-{own.number}.1" for kind in (MANIFESTS, LISTS)))
    snapshot = Snap(f"{own.number}.1", own.number, 1, listed, (Data(data, (own.number,), manifests),))
    ended = shared._replace(upkeep=shared.upkeep - 1)
    visible_first = phases_of(setup, "creation")[0] is COMMIT
    if phase is COMMIT:
        file = f"{METADATA}-{own.number}.1"
        made = Meta(file) if visible_first else Meta(file, (snapshot,), last=1, next_row_id=1)
        landed = () if visible_first else (own.number,)
        after = shared.with_files((file,))._replace(table=made, landed=(*shared.landed, *landed))
        told = after if visible_first else after._replace(acknowledged=(*after.acknowledged, own.number))
        yield told, further
        return
    if not visible_first:
        yield shared.with_files((data, manifests, listed)), further
        yield ended, AT_REST  # the query fails: nobody has seen anything
    elif shared.table is not None:
        table = shared.table
        file = f"{METADATA}-{own.number}.2"
        mine = snapshot.files[0]._replace(first_row_id=table.next_row_id)
        files = (*(table.head.files if table.head else ()), mine)
        added = snapshot._replace(number=table.last + 1, files=files)
        meta = table._replace(
            file=file,
            snapshots=(*table.snapshots, added),
            log=(*table.log, table.file),
            last=table.last + 1,
            next_row_id=table.next_row_id + 1,
        )
        after = shared.with_files((data, manifests, listed, file))._replace(
            table=meta, landed=(*shared.landed, own.number)
        )
        yield after._replace(acknowledged=(*after.acknowledged, own.number)), further
        yield ended.without(table.needed)._replace(table=None), AT_REST  # the query fails: the table is purged


def tag(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """Somebody tags an older snapshot, so that it stays."""
    table = shared.table
    if own != AT_REST or table is None or not setup.may(shared, "tag"):
        return
    for snapshot in table.snapshots[:-1]:
        file = f"{METADATA}-tag-{table.file}"
        after = table._replace(file=file, tags=(*table.tags, snapshot.id), log=(*table.log, table.file))
        tagged = shared.with_files((file,))._replace(table=after).spend("tag")
        yield Outcome(tagged, own, moved(shared, tagged), label=snapshot.id, marks=("a snapshot is tagged",))


MAINTAINER = (FileStep("begin upkeep", begin), FileStep("go on with upkeep", go_on))
TAGGER = (FileStep("tag", tag),)
