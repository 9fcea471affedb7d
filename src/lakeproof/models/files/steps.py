"""What writers and readers do, step by step. A writer makes one call of `commit/driver.py` a step, and anybody may come
between two of them; upkeep is in `upkeep_steps.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from lakeproof.checker.model import Outcome, Step
from lakeproof.commit.attempt import Attempt, Phase
from lakeproof.commit.upkeep import WhenMissing
from lakeproof.models.files.calls import ANSWER_LOST, ANSWERED, LATE, FileCalls, new_data, pointed
from lakeproof.models.files.world import (
    ALTER,
    APPEND,
    AT_REST,
    REWRITE,
    AtRest,
    Meta,
    Own,
    Reading,
    Setup,
    Shared,
    Writing,
    command_of,
)


class Moved(NamedTuple):
    """The pointer moved: whoever has a request on its way learns that it will never fit, without being told."""

    file: str


def moved(before: Shared, after: Shared) -> Moved | None:
    """What others observe of a step."""
    if before.table is None or after.table is None:
        return None
    return Moved(after.table.file) if before.table.file != after.table.file else None


def observe(setup: Setup, own: Own, event: Moved) -> Own:
    """A request for a pointer that has moved can never arrive, if the catalog compares."""
    if setup.compares and isinstance(own, Writing | AtRest) and own.requests:
        return own._replace(requests=tuple(r for r in own.requests if r.expected == event.file))
    return own


# ---------------------------------------------------------------- writers


def start(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A writer reads the table, and writes the data file of a command."""
    table = shared.table
    if own != AT_REST or shared.violated or table is None or shared.started >= setup.max_commands:
        return
    for kind in setup.commands:
        if kind == REWRITE and not (table.head and table.head.files):
            continue
        number = shared.started + 1
        data, sources = new_data(number, kind, table)
        after = shared._replace(started=number, under_way=(*shared.under_way, number))
        if data is not None:
            after = after.with_files((data.path,))
        scan = table if setup.rules.schema_of_scan else None
        op = Writing(number, kind, Attempt(max_retries=setup.max_retries), data, sources, scan)
        yield Outcome(after, op, label=f"{kind} {number}", marks=(f"{kind} starts",))


def go_on(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer makes the next call of its attempt."""
    if not isinstance(own, Writing) or own.attempt.ended or shared.violated:
        return
    phase = own.attempt.phase
    fates = [ANSWERED]
    if phase is Phase.SWAP and setup.may(shared, "lost answer"):
        fates += [ANSWER_LOST, *([LATE] if setup.late else [])]
    for fate in fates:
        calls = FileCalls(setup, shared, own, fate=fate).called()
        after = calls.shared if fate == ANSWERED else calls.shared.spend("lost answer")
        event = moved(shared, after)
        mine = observe(setup, calls.own, event) if event is not None else calls.own
        said = f"{phase}: {fate}" if fate else str(phase)
        marks = ((fate,) if fate else ()) + (("commits",) if event is not None else ())
        yield Outcome(after, mine, event, label=said, marks=marks)
    if phase is not Phase.SWAP and setup.may(shared, "failure"):
        calls = FileCalls(setup, shared, own, fails=True).called()
        yield Outcome(calls.shared.spend("failure"), calls.own, label=f"{phase} fails", marks=("a call fails",))


def clean_up(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The attempt has ended: the writer removes what its protocol says, and tells its user the outcome."""
    if not isinstance(own, Writing) or not own.attempt.ended or shared.violated:
        return
    after = FileCalls(setup, shared, own).left().shared
    phase = own.attempt.phase
    if phase is Phase.COMMITTED:
        after = _acknowledged(after, own)
    elif phase is Phase.UNKNOWN:
        after = after.leaving(own.files)
    else:
        after = after._replace(denied=tuple(sorted((*after.denied, own.command))))
    after = rested(after, own)
    landed_unheard = own.staged is not None and own.known != own.staged.meta
    found = ("finds its own commit",) if phase is Phase.COMMITTED and landed_unheard else ()
    yield Outcome(after, AtRest(own.requests), label=str(phase), marks=(f"ends: {phase}", *found))


def _acknowledged(shared: Shared, own: Writing) -> Shared:
    """What the user was promised: a row of an append, a column of an ALTER."""
    if own.kind == ALTER:
        return shared.spend("altered")
    rows = (own.command,) if own.kind == APPEND else ()
    return shared._replace(acknowledged=tuple(sorted((*shared.acknowledged, *rows))))


def rested(shared: Shared, own: Writing) -> Shared:
    """The command is no longer under way, unless a request of it is: no request takes longer than files are young."""
    if own.requests:
        return shared
    return shared._replace(under_way=tuple(n for n in shared.under_way if n != own.command))


def arrive(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A request that was late arrives at the catalog; perhaps its writer has long gone."""
    if not isinstance(own, Writing | AtRest) or shared.violated:
        return
    for request in own.requests:
        rest = tuple(r for r in own.requests if r != request)
        after = pointed(setup, shared, request)
        if after is None:
            continue
        event = moved(shared, after)
        left = own._replace(requests=rest)
        yield Outcome(after, left, event, label=f"command {request.command}", marks=("late request arrives",))


def give_up(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A request that was late is lost for good."""
    if isinstance(own, Writing | AtRest) and own.requests and not shared.violated:
        after = shared
        if isinstance(own, AtRest):
            gone = {request.command for request in own.requests}
            after = shared._replace(under_way=tuple(n for n in shared.under_way if n not in gone))
        yield Outcome(after, own._replace(requests=()), marks=("late request is lost",))


def crash(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The writer's process dies; what it wrote stays behind."""
    if isinstance(own, Writing) and setup.may(shared, "crash"):
        after = rested(shared.leaving(own.files), own).spend("crash")
        yield Outcome(after, AtRest(own.requests), marks=("crash",))


# ---------------------------------------------------------------- readers


def _opened(table: Meta) -> tuple[str, ...]:
    """What a scan of the head opens, in order."""
    head = table.head
    assert head is not None
    data = {file.path for file in head.files}
    return (table.file, *sorted(head.named - data), *sorted(data))


def begin_scan(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """A reader asks the catalog where the table is."""
    if own == AT_REST and shared.table is not None and shared.table.head and setup.may(shared, "scan"):
        yield Outcome(shared.spend("scan"), Reading(shared.table.head, _opened(shared.table)), marks=("a scan begins",))


def read(setup: Setup, shared: Shared, own: Own) -> Iterator[Outcome]:
    """The reader opens the next file of its scan."""
    if not isinstance(own, Reading) or shared.violated:
        return
    if not own.left:
        whole = tuple(sorted(own.rows)) == own.snapshot.rows
        yield Outcome(shared, AT_REST, label=str(own.rows), marks=("a scan ends" if whole else "a scan misses rows",))
        return
    path, rest = own.left[0], own.left[1:]
    rows = next((file.rows for file in own.snapshot.files if file.path == path), ())
    if path in shared.store:
        yield Outcome(shared, own._replace(left=rest, rows=own.rows + rows), label=path)
    elif setup.rules.upkeep.when_missing is WhenMissing.SKIP:
        yield Outcome(shared, own._replace(left=rest), label=f"{path} is gone")
    elif shared.table is None or shared.table.head is None:
        yield Outcome(shared, AT_REST, label="the table is gone", marks=("a scan fails",))
    elif path in shared.table.needed:  # the property about whole snapshots says so already
        yield Outcome(shared, AT_REST, label=f"{path} is gone", marks=("a scan fails",))
    else:
        again = Reading(shared.table.head, _opened(shared.table))
        yield Outcome(shared, again, label=f"{path} is gone", marks=("a scan begins again",))


def young(setup: Setup, shared: Shared, path: str) -> bool:
    """Whether a file may belong to a writer at work."""
    return not setup.slow_writers and command_of(path) in shared.under_way


class FileStep(NamedTuple):
    """One step of a kind of process; it is there where `when` says so."""

    name: str
    run: Callable[[Setup, Shared, Own], Iterator[Outcome]]
    when: Callable[[Setup], bool] = lambda setup: True


def _has(what: str) -> Callable[[Setup], bool]:
    return lambda setup: dict(setup.limits).get(what, 0) > 0


WRITER = (
    FileStep("start", start),
    FileStep("go on", go_on),
    FileStep("clean up", clean_up),
    FileStep("arrive", arrive, lambda setup: setup.late),
    FileStep("give up", give_up, lambda setup: setup.late),
    FileStep("crash", crash, _has("crash")),
)
READER = (FileStep("begin scan", begin_scan), FileStep("read", read))


def steps_of(setup: Setup, parts: tuple[FileStep, ...]) -> tuple[Step, ...]:
    """The steps of one kind of process."""
    return tuple(Step(part.name, partial(part.run, setup)) for part in parts if part.when(setup))
