"""What `commit/driver.py` calls in this model: each phase of an attempt, done to a catalog and a folder of files."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakeproof.commit.attempt import Happened, Keeps, Phase, certainly_in_vain, removable, what_became
from lakeproof.commit.driver import call
from lakeproof.commit.upkeep import old_versions
from lakeproof.models.files.world import (
    ALTER,
    DATA,
    LISTS,
    MANIFESTS,
    METADATA,
    REWRITE,
    Data,
    Meta,
    Setup,
    Shared,
    Snap,
    SwapRequest,
    Writing,
    kind_of,
)

ANSWERED, ANSWER_LOST, LATE = "", "the answer is lost", "the request is late"


def pointed(setup: Setup, shared: Shared, request: SwapRequest) -> Shared | None:
    """The catalog after a request; `None`: it compared, and somebody was faster."""
    table = shared.table
    if table is None or (setup.compares and table.file != request.expected):
        return None
    after = shared._replace(table=request.meta, landed=(*shared.landed, request.command))
    return after.leaving(old_versions((*table.log, table.file), (*request.meta.log, request.meta.file)))


class FileCalls:
    """The calls of one step; `fails`: the phase fails, `fate`: what becomes of the request."""

    def __init__(
        self, setup: Setup, shared: Shared, own: Writing, *, fails: bool = False, fate: str = ANSWERED
    ) -> None:
        self.setup, self.shared, self.own, self.fails, self.fate = setup, shared, own, fails, fate
        self.rules = setup.rules

    def called(self) -> FileCalls:
        """Make one call of the driver."""
        attempt, _ = call(self.own.attempt, self, self.rules.attempt)
        self.own = self.own._replace(attempt=attempt)
        return self

    def _may_fail(self) -> None:
        if self.fails:
            raise OSError

    def refresh(self) -> Happened:
        """Load the pointer and what it points to; a table that is gone, or misses its own file, cannot be loaded."""
        self._may_fail()
        table = self.shared.table
        if table is None or table.file not in self.shared.store:
            raise FileNotFoundError
        self.own = self.own._replace(base=table)
        return Happened.LOADED

    def look(self) -> Happened:
        """Load, and look for its own commit among all snapshots."""
        self.refresh()
        table, own = self.own.base, self.own
        assert table is not None
        if own.kind == ALTER:  # nothing in the table says whose column it is
            return Happened.CANNOT_TELL
        mine = [s for s in table.snapshots if s.command == own.command]
        if self.rules.finds_by_try:
            mine = [s for s in mine if s.id == f"{own.command}.{own.tries}"]
        if mine and self.rules.finds_own_commit:
            self.own = own._replace(known=table)
            return Happened.OWN_ID_FOUND
        return what_became(asked=own.asked, last=table.last, taken={s.number for s in table.snapshots})

    def validate(self) -> Happened:
        """A rewrite asks whether its inputs are still there; a command that is in the table has committed."""
        self._may_fail()
        table, own = self.own.base, self.own
        assert table is not None
        mine = [s for s in table.snapshots if s.command == own.command]
        if mine and own.tries and self.rules.finds_own_commit and not self.rules.finds_by_try:
            self.own = own._replace(known=table)
            return Happened.ALREADY_COMMITTED
        if not self._can_read(table):
            return Happened.HEAD_EXPIRED
        live = {file.path for file in table.head.files} if table.head else set()
        return Happened.MAY_COMMIT if {*own.sources} <= live else Happened.REFUSED

    def _can_read(self, table: Meta) -> bool:
        """Whether the head's list and manifests are there; those of a former head may have been removed."""
        opened = {path for path in table.head.named if kind_of(path) in (LISTS, MANIFESTS)} if table.head else set()
        if opened <= {*self.shared.store}:
            return True
        if self.shared.table is None or self.shared.table.file == table.file:
            raise FileNotFoundError
        return False

    def write_metadata(self) -> Happened:
        """Write the files of one more try and make its request ready."""
        own, base = self.own, self.own.base
        assert base is not None
        if not self._can_read(base):
            return Happened.HEAD_EXPIRED
        tries = own.tries + 1
        suffix = f"{own.command}.{1 if self.rules.shares_names else tries}"
        manifests, metadata = f"{MANIFESTS}-{suffix}", f"{METADATA}-{suffix}"
        written = (metadata,) if own.kind == ALTER else (manifests, f"{LISTS}-{suffix}", metadata)
        self.shared = self.shared.with_files(written)
        first = base.next_row_id
        if self.rules.row_ids_at_first_try and own.first_row_id is not None:
            first = own.first_row_id
        meta = self._meta(own, base, suffix, manifests, metadata, first)
        self.own = own._replace(
            tries=tries,
            written=tuple(dict.fromkeys((*own.written, *written))),
            last_try=written,
            asked=meta.last,
            first_row_id=first,
            staged=SwapRequest(base.file, meta, own.command),
        )
        self._may_fail()
        return Happened.WRITTEN

    def _meta(self, own: Writing, base: Meta, suffix: str, manifests: str, metadata: str, first: int) -> Meta:
        log = (*base.log, base.file)
        kept = log if self.setup.keep_versions is None else log[len(log) - self.setup.keep_versions :]
        if own.kind == ALTER:
            return base._replace(file=metadata, log=kept, schema=base.schema + 1)
        files = [file for file in (base.head.files if base.head else ()) if file.path not in own.sources]
        if own.data is not None:
            files.append(own.data._replace(listed_in=manifests, first_row_id=first))
        added = len(own.data.rows) if own.data is not None and own.kind != REWRITE else 0
        snapshot = Snap(suffix, own.command, base.last + 1, f"{LISTS}-{suffix}", tuple(sorted(files)))
        schema = own.scan.schema if self.rules.schema_of_scan and own.scan is not None else base.schema
        return base._replace(
            file=metadata,
            snapshots=(*base.snapshots, snapshot),
            log=kept,
            last=base.last + 1,
            schema=schema,
            next_row_id=first + added,
        )

    def swap(self) -> Happened:
        """The request wins, loses, loses its answer or is late."""
        request = self.own.staged
        assert request is not None
        if self.fate == LATE:
            self.own = self.own._replace(requests=(*self.own.requests, request))
            raise TimeoutError
        after = pointed(self.setup, self.shared, request)
        if after is None:
            return Happened.LOST_SWAP
        self.shared = after
        if self.fate == ANSWER_LOST:
            raise TimeoutError
        self.own, base = self.own._replace(known=request.meta), self.own.base
        assert base is not None
        self.shared = self.shared.without(old_versions(base.log, request.meta.log))
        return Happened.SWAPPED

    def written(self) -> Sequence[str]:
        """The metadata and manifests of all tries."""
        return self.own.written

    def named(self) -> Collection[str]:
        """What the committed snapshot names, and the metadata that the table still knows."""
        table = self.own.known
        keeps = self.rules.attempt.keeps if self.rules.attempt is not None else Keeps.NAMED
        if keeps is Keeps.NOTHING or table is None or self.own.attempt.phase is not Phase.COMMITTED:
            return ()
        if keeps is Keeps.LAST_TRY:
            return self.own.last_try
        mine = [s for s in table.snapshots if s.command == self.own.command]
        return frozenset((table.file, *table.log)).union(*(snapshot.named for snapshot in mine))

    def remove(self, paths: Sequence[str]) -> None:
        """These files are gone."""
        self.shared = self.shared.without(path for path in paths if kind_of(path) in self.rules.removes)

    def left(self) -> FileCalls:
        """What the ended attempt removes: of its tries what nobody needs, and its data where it was in vain."""
        own, by = self.own, self.rules.attempt
        self.remove(removable(own.attempt, self.written(), self.named(), by))
        if certainly_in_vain(own.attempt, by):
            brought = (own.data.path,) if own.data is not None else ()
            self.remove((*brought, *(own.sources if self.rules.removes_mentioned else ())))
        return self


def new_data(command: int, kind: str, table: Meta) -> tuple[Data | None, tuple[str, ...]]:
    """The data file of a command, and the files that it replaces."""
    if kind == ALTER:
        return None, ()
    path = f"{DATA}-{command}"
    if kind == REWRITE:
        old = table.head.files if table.head else ()
        return Data(path, tuple(sorted(row for f in old for row in f.rows))), tuple(f.path for f in old)
    return Data(path, (command,)), ()
