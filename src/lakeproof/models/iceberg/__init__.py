"""Apache Iceberg's commit protocol as a model: writers over one table, every decision taken by `commit/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from lakeproof.checker.model import Model, Outcome, Process, Step, StepFunction
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.models.iceberg import steps as protocol
from lakeproof.models.iceberg.bounds import PARAMETERS, PRESETS, Configured, configured, parameter_help
from lakeproof.models.iceberg.describing import describe
from lakeproof.models.iceberg.observing import observe
from lakeproof.models.iceberg.properties import properties
from lakeproof.models.iceberg.world import READY, Event, Op, Own, Ready, Shared, Writer

__all__ = ["PARAMETERS", "PRESETS", "build", "configured", "model_of", "parameter_help"]


def build(parameters: Mapping[str, str], policy: Policy | None = None) -> Model:
    """The model that the parameters describe, every writer with this policy unless a parameter says otherwise."""
    return model_of(configured(parameters, policy or POLICIES["lakeproof"]))


def model_of(config: Configured, *, told: bool = False) -> Model:
    """The model of a checked configuration; `told` keeps names, history and who is who, for a single run."""
    setup, policies = config.setup, config.policies
    if told:
        setup = replace(setup, told=True, canonical=False, lean=False, measure=False, table=config.named_table)
    writers = {}
    processes = []
    for number, (policy, commands) in enumerate(zip(policies, config.commands, strict=True), 1):
        name = f"writer-{number}"
        kind = name if told else policy.name if commands is None else f"{policy.name}: {commands}"
        writers[kind] = Writer(policy, setup, name if told else "", commands)
        processes.append(Process(name, READY, kind))
    by_policy = {writer.policy.name: writer for writer in writers.values()}
    return Model(
        name="iceberg",
        shared=Shared(setup.table),
        processes=tuple(processes),
        steps={kind: steps_of(writer) for kind, writer in writers.items()},
        properties=properties(setup, policies),
        observe=partial(_observe_as, by_policy),
        parameters={**config.given, "policy": policies[0].name},
        describe=partial(describe, setup, by_policy, tuple(process.name for process in processes)),
        is_final=is_final,
    )


def steps_of(writer: Writer) -> tuple[Step, ...]:
    """The protocol, in order; steps that the configuration switches off are not there at all."""
    setup = writer.setup

    def of(function: Callable[[Writer, Shared, Own], Iterator[Outcome]]) -> StepFunction:
        return partial(function, writer)

    found = [
        Step("start", of(protocol.start)),
        Step("read", of(protocol.read), private=True, reads_shared=False),
        Step("write", of(protocol.write), private=True, reads_shared=False),
        Step("swap", of(protocol.swap)),
        Step("refuse", of(protocol.refuse)),
    ]
    if not setup.fused:
        found.insert(3, Step("validate", of(protocol.validate_and_write_metadata), reads_shared=False))
    if setup.max_compactions:
        found.insert(1, Step("start compaction", of(protocol.start_compaction)))
        found.append(Step("finish", of(protocol.finish)))
    if setup.unknown:
        found += [Step("look", of(protocol.look)), Step("arrive", of(protocol.arrive))]
        found += [] if setup.max_compactions else [Step("finish", of(protocol.finish))]
    if setup.max_crashes:
        found.append(Step("crash", of(protocol.crash)))
    if setup.max_expiries:
        found.append(Step("expire", of(protocol.expire)))
    return tuple(found)


def _observe_as(writers: Mapping[str, Writer], own: Own, event: Event) -> Own:
    """Writers of several engines on one table: each follows by its own policy."""
    return observe(writers[own.policy], own, event) if isinstance(own, Op) else own


def is_final(shared: Shared, own: Own) -> bool:
    """A writer rests when it has nothing in hand; a violated world is not followed any further."""
    return isinstance(own, Ready) or bool(shared.violated)
