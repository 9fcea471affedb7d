"""The conflict matrix: what becomes of two commands that read the same snapshot, when one has committed.

Every cell is a run of the model: both commands scan, the first commits, the second validates. What it hears, and what
the judge says of its commit, is the cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from lakeproof.checker.runs import World, start_of, taken
from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.meaning import Assignment, Exists, Merge, MergeClause, RowCommand, Select, Term
from lakeproof.commit.policy import Policy
from lakeproof.commit.writing import first_files
from lakeproof.filters import Compare, Expression, all_of
from lakeproof.format import PartitionField, Row, TableShape, TableState
from lakeproof.models.iceberg import Member, assembled
from lakeproof.models.iceberg.world import COMPACTION, Setup

COLUMNS = ("name", "color", "letter")
KINDS = (
    "INSERT",
    "INSERT SELECT",
    "UPDATE",
    "DELETE",
    "DELETE EXISTS",
    "MERGE",
    "INSERT OVERWRITE",
    "compaction",
)
UPSERT = "UPSERT"
COMMANDS = {
    "INSERT": Command.INSERT,
    "INSERT SELECT": Command.INSERT_SELECT,
    "UPDATE": Command.UPDATE,
    "DELETE": Command.DELETE,
    "DELETE EXISTS": Command.DELETE,
    "MERGE": Command.MERGE,
    "INSERT OVERWRITE": Command.OVERWRITE,
    "compaction": Command.REWRITE,
    UPSERT: Command.UPSERT,
}
"""What each kind asks of a policy; an upsert is a streaming engine's, and is only asked of pairs."""
LAYOUTS = ("same", "same_file", "same_partition", "apart")
_WITH_MODE = ("UPDATE", "DELETE", "DELETE EXISTS", "MERGE")
_READS = (*_WITH_MODE, "INSERT SELECT", "INSERT OVERWRITE")


class Cell(NamedTuple):
    """One pair of commands and what becomes of the second."""

    first: str
    second: str
    mode: str
    isolation: str
    rows: str
    outcome: str  # both_commit | rerun | conflict | anomaly
    check: str | None
    anomaly: str | None
    states: int

    def to_json(self) -> dict[str, Any]:
        """The cell as `lakeproof matrix --json` prints it."""
        return self._asdict()


class PairCell(NamedTuple):
    """A cell of two engines, and the run that leads there: it is a shortest one, for both must scan before a commit."""

    cell: Cell
    steps: tuple[str, ...]

    @property
    def word(self) -> str:
        """What the pair is to its users: safe, aborts, or anomaly."""
        return {"conflict": "aborts", "anomaly": "anomaly"}.get(self.cell.outcome, "safe")

    def to_json(self) -> dict[str, Any]:
        """The cell as `lakeproof matrix --policy-of-second … --json` prints it."""
        return {**self.cell.to_json(), "pair": self.word, "steps": list(self.steps)}


def cells(policy: Policy) -> Iterator[Cell]:
    """Every cell that has a meaning: modes where a command has two, isolations where the second reads."""
    for first in KINDS:
        for second in KINDS:
            has_mode = first in _WITH_MODE or second in _WITH_MODE
            modes = tuple(Mode) if has_mode and not policy.always_copies else (Mode.COPY_ON_WRITE,)
            isolations = tuple(Isolation) if second in _READS else (Isolation.SNAPSHOT,)
            for mode in modes:
                for isolation in isolations:
                    for layout in LAYOUTS:
                        if meaningful(first, second, layout):
                            yield cell(policy, first, second, mode, isolation, layout)


def pair_cells(first: Policy, second: Policy) -> Iterator[PairCell]:
    """Every cell of two engines on one table: the first's command commits, then the second's validates."""
    for one in (*KINDS, UPSERT):
        for other in (*KINDS, UPSERT):
            if not (_runs(first, one) and _runs(second, other)):
                continue
            for mode in _modes(first, one, second, other):
                for isolation in tuple(Isolation) if other in _READS else (Isolation.SNAPSHOT,):
                    for layout in LAYOUTS:
                        if meaningful(one, other, layout) and not (UPSERT in (one, other) and layout == "same_file"):
                            run = _Pair((first, second), one, other, mode, isolation, layout)
                            outcome, check, anomaly = run.outcome()
                            cell = Cell(
                                one, other, str(mode), str(isolation), layout, outcome, check, anomaly, run.states
                            )
                            yield PairCell(cell, tuple(run.steps))


def _runs(policy: Policy, kind: str) -> bool:
    """Whether an engine has this kind of command; upserts by equality delete only if it says so."""
    return COMMANDS[kind] in policy.only if kind == UPSERT else policy.runs(COMMANDS[kind])


def shortest_anomaly(found: list[PairCell]) -> PairCell | None:
    """The run with the fewest steps to wrong rows; where no row is wrong, to an order that cannot be."""
    wrong = [pair for pair in found if pair.word == "anomaly"]
    return min(wrong, key=lambda pair: (pair.cell.anomaly == "isolation_kept", len(pair.steps)), default=None)


def _modes(first: Policy, one: str, second: Policy, other: str) -> tuple[Mode, ...]:
    """The modes of the table that make a difference to at least one of the two."""
    free = any(
        kind in _WITH_MODE and not (policy.always_copies or policy.never_copies)
        for policy, kind in ((first, one), (second, other))
    )
    return tuple(Mode) if free else (Mode.MERGE_ON_READ,)


def meaningful(first: str, second: str, layout: str) -> bool:
    """A new row lies in no file yet, so "same file" says nothing of INSERTs; a subquery reads the other's row."""
    inserts = "INSERT" in (first, second)
    return not (inserts and layout == "same_file")


def cell(policy: Policy, first: str, second: str, mode: Mode, isolation: Isolation, layout: str) -> Cell:
    """Run one pair."""
    return run_of(policy, first, second, mode, isolation, layout).cell


def run_of(policy: Policy, first: str, second: str, mode: Mode, isolation: Isolation, layout: str) -> PairCell:
    """One pair with the steps that lead to its outcome."""
    run = _Pair((policy, policy), first, second, mode, isolation, layout)
    outcome, check, anomaly = run.outcome()
    cell = Cell(first, second, str(mode), str(isolation), layout, outcome, check, anomaly, run.states)
    return PairCell(cell, tuple(run.steps))


class _Pair:
    """Two writers with one command each, driven step by step."""

    def __init__(
        self, policies: tuple[Policy, Policy], first: str, second: str, mode: Mode, isolation: Isolation, layout: str
    ) -> None:
        table, shape = _table(layout)
        mine, theirs = ("jack", "A"), _other(layout)
        commands = (_command(first, mine, theirs), _command(second, theirs, mine))
        setup = Setup(
            shape=shape,
            commands=tuple(command for command in commands if command is not None),
            table=table,
            update_mode=mode,
            delete_mode=mode,
            isolation=isolation,
            max_compactions=1,
            duplicates=True,
            guarded=True,
            canonical=UPSERT not in (first, second),
        )
        indexes = iter(range(2))
        programs = [((COMPACTION if command is None else next(indexes),),) for command in commands]
        letters = (mine[1], theirs[1])
        members = [Member(f"writer-{i + 1}", policies[i], None, programs[i], (letters[i],)) for i in (0, 1)]
        self.model = assembled(setup, tuple(members), {})
        self.world = start_of(self.model)
        self.states = 1
        self.steps: list[str] = []
        self.policies = policies

    def outcome(self) -> tuple[str, str | None, str | None]:
        """Both scan; the first commits; what becomes of the second?"""
        for process in (0, 1):
            while self._take(process, "start", "start compaction", "read", "write"):
                pass
        self._take(0, "validate")
        self._take(0, "swap", "finish")
        rerun: str | None = None
        while True:
            refused = self._take(1, "refuse")
            if refused:
                check = refused.removeprefix("refused by ")
                if not self._busy(1) and "abort" in self.marks:
                    return "conflict", check, None
                rerun = rerun or check
            elif not self._take(1, "read", "write", "validate", "swap", "finish"):
                break
        if self.world.shared.violated:
            return "anomaly", rerun, self.world.shared.violated[0]
        return ("rerun", rerun, None) if rerun else ("both_commit", None, None)

    def _busy(self, process: int) -> bool:
        return hasattr(self.world.owns[process], "command")

    def _take(self, process: int, *names: str) -> str:
        """Take the first of these steps that is open; gives its first mark, or its name, or nothing."""
        for step in self.model.steps_of(self.model.processes[process].kind):
            if step.name in names:
                for outcome in step.run(self.world.shared, self.world.owns[process]):
                    self.world = taken(self.model, self.world, process, step, outcome).world
                    self.marks = outcome.marks
                    self.states += 1
                    said = f" ({outcome.label})" if outcome.label else ""
                    self.steps.append(f"writer-{process + 1}, {self.policies[process].name}: {step.name}{said}")
                    return outcome.marks[0] if outcome.marks else step.name
        return ""

    marks: tuple[str, ...] = ()
    world: World


def _other(layout: str) -> tuple[str, str]:
    return {"same": ("jack", "A"), "apart": ("sarah", "B")}.get(layout, ("sarah", "A"))


def _table(layout: str) -> tuple[TableState, TableShape]:
    """jack and sarah, in one file or in two, partitioned by letter, and a neighbour in every partition."""
    shape = TableShape(COLUMNS, ((PartitionField("letter"),),))
    name, letter = _other(layout) if layout != "same" else ("sarah", "A")
    rows: list[Row] = [("jack", "red", "A"), (name, "red", letter)]
    groups = [rows] if layout in ("same", "same_file") else [[row] for row in rows]
    groups += [[("zoe", "red", one)] for one in dict.fromkeys(row[2] for row in rows)]
    return first_files(groups, shape), shape


def _command(kind: str, mine: tuple[str, str], theirs: tuple[str, str]) -> RowCommand | None:
    """The command on my row; a subquery asks for the other's. `None`: a compaction."""
    name, letter = mine
    where: Expression = all_of([Compare("name", "=", name), Compare("letter", "=", letter)])
    match kind:
        case "INSERT":
            return RowCommand(Command.INSERT, rows=((name, "green", letter),), text="INSERT")
        case "INSERT SELECT":
            terms = (Term("copy"), Term(column="color"), Term(column="letter"))
            return RowCommand(Command.INSERT_SELECT, select=Select(where, terms, ("", "", "")), text=kind)
        case "UPDATE":
            return RowCommand(Command.UPDATE, where, (Assignment("color", Term("blue")),), text=kind)
        case "DELETE":
            return RowCommand(Command.DELETE, where, text=kind)
        case "DELETE EXISTS":
            guard = Compare("name", "=", theirs[0] if theirs != mine else "sarah")
            return RowCommand(Command.DELETE, where, exists=(Exists(guard),), text=kind)
        case "MERGE":
            return _merge(name, letter)
        case "UPSERT":
            by_name: Expression = Compare("name", "=", name)
            return RowCommand(Command.UPSERT, by_name, rows=((name, "violet", letter),), text=kind)
        case "INSERT OVERWRITE":
            partition = Compare("letter", "=", letter)
            return RowCommand(Command.OVERWRITE, partition, rows=((name, "white", letter),), text=kind)
    return None


def _merge(name: str, letter: str) -> RowCommand:
    clauses = (
        MergeClause("matched", "update", assignments=(Assignment("color", Term(column="color", source=True)),)),
        MergeClause("not matched", "insert", values=tuple(Term(column=c, source=True) for c in COLUMNS)),
    )
    merge = Merge(COLUMNS, ((name, "black", letter),), (("name", "name"), ("letter", "letter")), clauses)
    return RowCommand(Command.MERGE, merge=merge, text="MERGE")
