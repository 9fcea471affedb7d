"""Apache Iceberg's commit protocol as a model: writers over one table, every decision taken by `commit/`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from lakeproof.checker.model import Model, Process, Step
from lakeproof.commit.checks import deleted_data_files
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.format import Value
from lakeproof.models.iceberg.anybody import OTHERS, Others
from lakeproof.models.iceberg.bounds import PARAMETERS, PRESETS, Configured, bounds_of, configured, parameter_help
from lakeproof.models.iceberg.describing import describe
from lakeproof.models.iceberg.naming import canonical
from lakeproof.models.iceberg.observing import heard_as, observe
from lakeproof.models.iceberg.properties import properties
from lakeproof.models.iceberg.renaming.sorting import SortedFiles
from lakeproof.models.iceberg.renaming.symmetry import symmetries
from lakeproof.models.iceberg.steps import steps_of
from lakeproof.models.iceberg.world import READY, Event, Op, Own, Ready, Setup, Shared, Writer

__all__ = [
    "PARAMETERS",
    "PRESETS",
    "Member",
    "assembled",
    "build",
    "configured",
    "formed",
    "model_of",
    "parameter_help",
]


def build(parameters: Mapping[str, str], policy: Policy | None = None) -> Model:
    """The model that the parameters describe, every writer with this policy unless a parameter says otherwise."""
    return model_of(configured(parameters, policy or POLICIES["lakeproof"]))


class Member(NamedTuple):
    """One writer: its policy, and what it runs (`commands`: any of these; `program`: these in order)."""

    name: str
    policy: Policy
    commands: tuple[int, ...] | None = None
    program: tuple[tuple[int, ...], ...] | None = None
    partition: tuple[Value, ...] | None = None

    def kind(self) -> str:
        """Writers of one kind are interchangeable."""
        what = self.commands if self.program is None else self.program
        return self.policy.name if what is None else f"{self.policy.name}: {what} {self.partition}"


def model_of(config: Configured, *, told: bool = False) -> Model:
    """The model of a checked configuration."""
    pairs = zip(config.policies, config.commands, strict=True)
    members = tuple(Member(f"writer-{i}", policy, commands) for i, (policy, commands) in enumerate(pairs, 1))
    return assembled(config.setup, members, {**config.given, "policy": config.policies[0].name}, told=told)


def assembled(setup: Setup, members: tuple[Member, ...], parameters: Mapping[str, str], *, told: bool = False) -> Model:
    """The protocol for these writers; `told` keeps names, history and who is who, for a single run."""
    policies = tuple(member.policy for member in members)
    setup = formed(setup, policies, told=told)
    renamings = symmetries(setup, policies, tuple(member.commands for member in members))
    writers = {
        member.name if told else member.kind(): Writer(
            member.policy, setup, member.name if told else "", member.commands, member.program, member.partition
        )
        for member in members
    }
    by_policy = {writer.policy.name: writer for writer in writers.values()}
    processes = [Process(m.name, READY, m.name if told else m.kind()) for m in members]
    steps = {kind: steps_of(writer) for kind, writer in writers.items()}
    if setup.anybody is not None:
        processes.append(Process(OTHERS, READY, OTHERS, has_memory=False))
        steps[OTHERS] = (Step("others commit", Others(setup)),)
    return Model(
        name="iceberg",
        shared=Shared(setup.table),
        processes=tuple(processes),
        steps=steps,
        properties=properties(setup, policies),
        observe=partial(_observe_as, by_policy),
        heard_as=partial(_heard_as, by_policy),
        parameters=parameters,
        describe=partial(describe, setup, by_policy, tuple(process.name for process in processes)),
        is_final=is_final,
        value_symmetries=renamings,
        own_form=SortedFiles(setup.shape) if renamings else None,
        bounds=bounds_of(setup, len(members), in_order=any(member.program is not None for member in members)),
    )


def formed(setup: Setup, policies: tuple[Policy, ...], *, told: bool = False) -> Setup:
    """The set-up with its table in the form in which it is explored: it keeps what some check may ask.

    A run that is told keeps everything.
    """
    if told:
        return replace(setup, told=True, canonical=False, lean=False)
    asked = {check for policy in policies for line in policy.lines for part in line[2:] for check in part}
    setup = replace(setup, keeps_bounds=deleted_data_files.__name__ in asked)
    return replace(setup, table=canonical(setup.table, setup)[0]) if setup.canonical else setup


def _observe_as(writers: Mapping[str, Writer], own: Own, event: Event) -> Own:
    """Writers of several engines on one table: each follows by its own policy."""
    return observe(writers[own.policy], own, event) if isinstance(own, Op) else own


def _heard_as(writers: Mapping[str, Writer], own: Own) -> Own:
    return heard_as(writers[own.policy], own) if isinstance(own, Op) else own


def is_final(shared: Shared, own: Own) -> bool:
    """A writer rests when it has nothing in hand; a violated world is not followed any further."""
    return isinstance(own, Ready) or bool(shared.violated)
