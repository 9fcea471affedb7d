"""What `commit/driver.py` calls in this model: the same protocol as on a real table, over a shared value.

Loading the table, validating and writing metadata are calls of one step: what is validated is what was loaded, so
nobody can come between them and be seen; whoever does makes the swap lost, and that is a step of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakeproof.commit.attempt import Happened, Phase, heard, what_became
from lakeproof.commit.change import TableChange
from lakeproof.commit.driver import call, leave
from lakeproof.commit.validation import Answer, Commit, CommitWith, validate
from lakeproof.models.iceberg.committing import committed
from lakeproof.models.iceberg.observing import observe
from lakeproof.models.iceberg.world import HIDDEN, NO_REQUEST, NOBODY, OWN, Event, Op, Shared, Writer

ANSWERED, ANSWER_LOST, LATE = "", "the answer is lost", "the request is late"


def answered(writer: Writer, shared: Shared, op: Op) -> Answer:
    """What `commit/` says of this change now."""
    checks, setup, head = writer.checks(op.change), writer.setup, shared.table
    return validate(op.change, op.window, writer.policy, checks, reruns_left=setup.reruns, head=head, shape=setup.shape)


def numbered_once(change: TableChange, next_row_id: int) -> TableChange:
    """The change with its new rows numbered from here, unless an earlier try numbered them: a bug of others."""
    files = []
    for file in change.added_data_files:
        count = len(file.rows or ())
        known = file.lineage or ((None, None),) * count
        stored = tuple((next_row_id + p if number is None else number, at) for p, (number, at) in enumerate(known))
        files.append(file._replace(lineage=stored))
        next_row_id += count
    return change._replace(added_data_files=tuple(files))


class WriterCalls:
    """The calls of one step; `fails` is the phase that fails, `fate` what becomes of the request."""

    def __init__(
        self, writer: Writer, shared: Shared, own: Op, *, fails: Phase | None = None, fate: str = ANSWERED
    ) -> None:
        self.writer, self.shared, self.own, self.fails, self.fate = writer, shared, own, fails, fate
        self.attempt = own.attempt
        self.answer: Answer | None = None
        self.event: Event | None = None
        self.removed: Sequence[str] = ()

    def tried(self) -> WriterCalls:
        """Call, until the request can be sent or the attempt has ended."""
        while self.attempt.phase is not Phase.SWAP and not self.attempt.ended:
            self.called()
        return self

    def called(self) -> WriterCalls:
        """Make one call of the driver."""
        attempt, _ = call(self.attempt, self)
        self.attempt = attempt._replace(retries=0)
        self.own = self.own._replace(attempt=self.attempt)
        return self

    def _may_fail(self, phase: Phase) -> None:
        if self.fails is phase:
            raise OSError

    def refresh(self) -> Happened:
        """The window is what was observed; the sequence number to ask for is free."""
        self._may_fail(Phase.REFRESH)
        if not self.own.request.landed:  # files of tries that certainly did not commit are not looked at any more
            self.own = self.own._replace(request=NO_REQUEST)
        return Happened.LOADED

    def look(self) -> Happened:
        """The table shows who took the sequence number, if that snapshot was not expired."""
        self._may_fail(Phase.LOOK)
        request = self.own.request
        if request.taken == OWN and self.writer.policy.finds_own_commit:
            return Happened.OWN_ID_FOUND
        seen = () if request.taken == HIDDEN else (1,)
        happened = what_became(asked=1, last=int(request.taken != NOBODY), taken=seen)
        if happened is Happened.CERTAINLY_NOT:
            self.refresh()
        return happened

    def validate(self) -> Happened:
        """Ask `commit/`."""
        self._may_fail(Phase.VALIDATE)
        self.answer = answered(self.writer, self.shared, self.own)
        return heard(self.answer)

    def write_metadata(self) -> Happened:
        """One more try, with files of its own."""
        if self.writer.setup.unknown:
            request = self.own.request
            # the first and the last are told apart; those between are not in the table, so two are enough
            tries = min(request.tries + 1, 2) if self.attempt.unanswered or request.landed else 1
            self.own = self.own._replace(request=request._replace(tries=tries))
        if self.writer.policy.row_ids_at_first_try and self.shared.table.next_row_id is not None:
            self.own = self.own._replace(change=numbered_once(self.own.change, self.shared.table.next_row_id))
        self._may_fail(Phase.WRITE_METADATA)
        return Happened.WRITTEN

    def swap(self) -> Happened:
        """The request wins (`observe` tells whoever has lost it), loses its answer or is late."""
        if self.fate == LATE:
            self.own = self.own._replace(request=self.own.request._replace(on_its_way=True))
            raise TimeoutError
        self.answer = answered(self.writer, self.shared, self.own)
        assert isinstance(self.answer, Commit | CommitWith)
        self.shared, self.event = committed(self.writer, self.shared, self.own, self.answer)
        if self.fate == ANSWERED:
            return Happened.SWAPPED
        seen = observe(self.writer, self.own, self.event, me=True)
        assert isinstance(seen, Op)
        self.own = seen
        raise TimeoutError

    def left(self) -> WriterCalls:
        """What the ended attempt leaves behind; a snapshot without its files cannot be read."""
        if self.writer.setup.unknown:
            leave(self.attempt, self)
            if {*self.removed} & {*self.named()}:
                self.shared = self.shared._replace(violated=tuple({*self.shared.violated, "consistent_read"}))
        return self

    def written(self) -> Sequence[str]:
        """The tries since nothing was unanswered, by number."""
        return [str(number) for number in range(1, self.own.request.tries + 1)]

    def named(self) -> Sequence[str]:
        """The try that is in the table: the first, if it landed unheard, else the last."""
        if self.own.request.landed:
            return ["1"]
        return self.written()[-1:] if self.event is not None else ()

    def remove(self, paths: Sequence[str]) -> None:
        """The files of these tries are gone."""
        self.removed = paths
