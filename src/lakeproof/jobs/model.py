"""Jobs as a model: every run of a job is a writer with a program of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from lakeproof.checker.model import Model
from lakeproof.commit.change import Command, Isolation
from lakeproof.commit.meaning import RowCommand
from lakeproof.commit.policy import Policy
from lakeproof.commit.writing import first_files, partition_of
from lakeproof.filters import ALWAYS
from lakeproof.format import PartitionField, Row, TableShape, TableState
from lakeproof.jobs.conflict_filters import replaced_rows_filter
from lakeproof.jobs.hidden import TABLE
from lakeproof.jobs.meaning import StatementRun
from lakeproof.jobs.preparing import First, PreparedJobs, first_tables
from lakeproof.jobs.quick import Memory, quickened
from lakeproof.models.iceberg import Member, assembled, formed
from lakeproof.models.iceberg.world import COMPACTION, Setup, Shared


class Space(NamedTuple):
    """The jobs under a policy on no particular first table; `only` leaves out the other jobs."""

    ready: PreparedJobs
    setup: Setup
    members: tuple[Member, ...]
    quick: Model
    memory: Memory
    only: tuple[str, ...]  # the jobs, twice if two runs of one are in it

    @property
    def parameters(self) -> dict[str, str]:
        """What the model says of itself."""
        return {name: str(value) for name, value in self.quick.parameters.items()}


class Beginning(NamedTuple):
    """The jobs on one first table."""

    space: Space
    first: First

    @property
    def model(self) -> Model:
        """The model with every step and property."""
        setup = replace(self.space.setup, table=self._named())
        return assembled(setup, self.space.members, self.space.parameters)

    @property
    def told(self) -> Model:
        """The same for telling a run: files keep their names."""
        setup = replace(self.space.setup, table=self._named())
        return assembled(setup, self.space.members, self.space.parameters, told=True)

    @property
    def quick(self) -> Model:
        """The model with validation and swap as one step, and only the properties of single commits."""
        policies = tuple(member.policy for member in self.space.members)
        setup = formed(replace(self.space.setup, table=self._named()), policies)
        return replace(self.space.quick, shared=Shared(setup.table))

    @property
    def rows(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """The first rows without hidden values: table and rows of each data file."""
        ready = self.space.ready
        hidden = {t.name: sum(h.table == t.name for h in ready.hidden) for t in ready.jobs.tables}
        return tuple((name, tuple(row[: len(row) - hidden[name]] for row in rows)) for name, rows in self.first)

    def _named(self) -> TableState:
        groups: list[list[Row]] = []
        shape = self.space.setup.shape
        for table, rows in self.first:
            parts: dict[object, list[Row]] = {}
            for row in rows:
                packed = self.space.ready.columns.packed(table, row)
                parts.setdefault(partition_of(packed, shape), []).append(packed)
            groups.extend(parts.values())
        return first_files(groups, shape)


def space_of(ready: PreparedJobs, policy: Policy, only: tuple[str, ...] | None = None) -> Space:
    """The jobs under a policy; `only` leaves out the other jobs (a name twice: two runs of it)."""
    setup = _setup(ready)
    members = tuple(_members(ready, policy, only))
    whole = assembled(replace(setup, fused=True), members, {"jobs": ready.jobs.name, "policy": policy.name})
    memory = ready.memories.setdefault(policy.name, Memory({}, {}, set(), set()))
    names = tuple(job.name for job in ready.jobs.jobs for _ in range(job.times)) if only is None else only
    return Space(ready, setup, members, quickened(whole, memory), memory, names)


def _setup(ready: PreparedJobs) -> Setup:
    compacts = any(one.command is Command.REWRITE for job in ready.jobs.jobs for one in job.statements)
    return Setup(
        shape=model_shape(ready),
        commands=tuple(command for runs in model_commands(ready) for command in runs),
        table=TableState(),
        isolation=Isolation.SERIALIZABLE,
        max_commands=1,
        max_compactions=int(compacts),
        duplicates=True,
        guarded=any(run.has_subquery for runs in ready.runs for run in runs),
        several=ready.columns.several,
    )


def beginnings(space: Space) -> Iterator[Beginning]:
    """The jobs on every first table."""
    for first in first_tables(space.ready):
        yield Beginning(space, first)


def model_shape(ready: PreparedJobs) -> TableShape:
    """The shape of the model's table."""
    columns = ready.columns
    fields = [
        field._replace(column=columns.named(table.name, field.column))
        for table in ready.jobs.tables
        for field in table.fields
    ]
    first = [PartitionField(TABLE)] if columns.several else []
    return TableShape(columns.names, ((*first, *fields),), ready.jobs.tables[0].format_version)


def model_commands(ready: PreparedJobs) -> list[list[RowCommand]]:
    """The runs of each statement as commands of the model."""
    return [[_command(run, len(runs) > 1) for run in runs] for runs in ready.runs]


def _command(run: StatementRun, several: bool) -> RowCommand:
    made = run.of.made
    where = replaced_rows_filter(made) if made.command is Command.OVERWRITE else ALWAYS
    where = run.of.columns.placed(where, made.table)
    text = " ".join(made.text.split())
    if several:
        source = ["no row" if run.source is None else "source row " + " ".join(map(str, run.source))]
        text += f"  [{', '.join([*(source if made.source and made.source.free else []), *map(str, run.chosen)])}]"
    return RowCommand(made.command, where, text=text, meaning=run)


def _members(ready: PreparedJobs, policy: Policy, only: tuple[str, ...] | None) -> Iterable[Member]:
    """One writer for each run of a job."""
    starts: list[int] = []
    at = 0
    for runs in ready.runs:
        starts.append(at)
        at += len(runs)
    number = 0
    for job in ready.jobs.jobs:
        program: list[tuple[int, ...]] = []
        for made in job.statements:
            whole = range(starts[number], starts[number] + len(ready.runs[number]))
            program.append((COMPACTION,) if made.command is Command.REWRITE else tuple(whole))
            number += 1
        compacted = [made.table for made in job.statements if made.command is Command.REWRITE]
        partition = (compacted[0],) if compacted and ready.columns.several else None
        times = job.times if only is None else only.count(job.name)
        for run in range(1, times + 1):
            yield Member(job.name if times == 1 else f"{job.name}#{run}", policy, None, tuple(program), partition)
