"""Jobs as a model: every run of a job is a writer with a program of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from lakeproof.checker.model import Model
from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.policy import Policy
from lakeproof.commit.row_command import RowCommand
from lakeproof.commit.writing import first_files, partition_of
from lakeproof.format import Row, TableState
from lakeproof.jobs.abstraction import Abstraction, abstracted, alternatives, first_rows
from lakeproof.jobs.reading import Jobs, ReadJob
from lakeproof.models.iceberg import Member, assembled
from lakeproof.models.iceberg.naming import canonical
from lakeproof.models.iceberg.world import COMPACTION, Setup


class Beginning(NamedTuple):
    """A model of the jobs on one first table, and the same for telling a run."""

    model: Model
    told: Model
    setup: Setup
    rows: tuple[tuple[Row, ...], ...]


def models_of(jobs: Jobs, policy: Policy, *, only: tuple[str, ...] | None = None) -> list[Beginning]:
    """One model for each first table; `only` leaves out the other jobs (a name twice: two runs of it)."""
    cut = abstracted(jobs)
    commands: dict[RowCommand, int] = {}
    members = tuple(_members(jobs, cut, commands, policy, only))
    found = []
    for rows in first_rows(jobs, cut):
        setup, named = _setup(jobs, cut, tuple(commands), rows)
        parameters = {"jobs": jobs.name, "policy": policy.name}
        told = replace(setup, table=named)
        model = assembled(setup, members, parameters)
        found.append(Beginning(model, assembled(told, members, parameters, told=True), setup, rows))
    return found


def _members(
    jobs: Jobs, cut: Abstraction, commands: dict[RowCommand, int], policy: Policy, only: tuple[str, ...] | None
) -> Iterable[Member]:
    for job in jobs.jobs:
        times = job.times if only is None else only.count(job.name)
        program = _program(job, cut, commands, jobs.shape.columns)
        for number in range(1, times + 1):
            name = job.name if times == 1 else f"{job.name}#{number}"
            yield Member(name, policy, program=program)


def _program(
    job: ReadJob, cut: Abstraction, commands: dict[RowCommand, int], columns: tuple[str, ...]
) -> tuple[tuple[int, ...], ...]:
    steps: list[tuple[int, ...]] = []
    for command in job.commands:
        if command.command is Command.REWRITE:
            steps.append((COMPACTION,))
            continue
        made = alternatives(command, cut, columns)
        steps.append(tuple(commands.setdefault(one, len(commands)) for one in made))
    return tuple(steps)


def _setup(
    jobs: Jobs, cut: Abstraction, commands: tuple[RowCommand, ...], rows: tuple[tuple[Row, ...], ...]
) -> tuple[Setup, TableState]:
    shape = jobs.shape._replace(columns=cut.columns, case_sensitive=True)
    groups: list[list[Row]] = []
    for file in rows:
        parts: dict[object, list[Row]] = {}
        for row in file:
            parts.setdefault(partition_of(row, shape), []).append(row)
        groups.extend(parts.values())
    named = first_files(groups, shape)
    compacts = any(c.command is Command.REWRITE for job in jobs.jobs for c in job.commands)
    setup = Setup(
        shape=shape,
        commands=commands,
        table=canonical(named, shape)[0],
        update_mode=dict(jobs.modes).get(Command.UPDATE, Mode.COPY_ON_WRITE),
        delete_mode=dict(jobs.modes).get(Command.DELETE, Mode.COPY_ON_WRITE),
        isolation=Isolation.SERIALIZABLE,
        max_commands=1,
        max_compactions=int(compacts),
        duplicates=True,
        guarded=any(command.exists for command in commands),
        modes=jobs.modes,
        isolations=jobs.isolations,
    )
    return setup, named
