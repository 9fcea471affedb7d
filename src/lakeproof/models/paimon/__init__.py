"""Apache Paimon's primary-key tables as a model: what writers, compactors and committers can do to them together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lakeproof.checker.model import Model, Process, SearchBounds
from lakeproof.models.paimon.bounds import PARAMETERS, PRESETS, Setup
from lakeproof.models.paimon.describe import describe
from lakeproof.models.paimon.parameters import parameter_help, setup_from
from lakeproof.models.paimon.properties import properties
from lakeproof.models.paimon.steps import observe, steps
from lakeproof.models.paimon.symmetry import symmetries
from lakeproof.models.paimon.world import BAD, Bucket, Expected, Idle, Own, Shared

__all__ = ["PARAMETERS", "PRESETS", "build", "parameter_help", "setup_from"]


def build(parameters: Mapping[str, str]) -> Model:
    """The model that the parameters describe; names, values or topologies that cannot be raise `InvalidInput`."""
    setup = setup_from(parameters)
    members = processes(setup)
    names = tuple(process.name for process in members)
    return Model(
        name="paimon",
        shared=empty_table(setup),
        processes=members,
        steps=steps(setup),
        properties=properties(setup),
        observe=partial(observe, setup),
        parameters=dict(setup.given),
        describe=partial(describe, setup, names),
        value_symmetries=symmetries(setup),
        is_final=is_final,
        bounds=bounds_of(setup),
    )


def bounds_of(setup: Setup) -> SearchBounds:
    """What a verdict on this set-up is about."""
    sizes = {
        "writers": setup.num_writers,
        "compactors": setup.num_compactors,
        "writes": setup.max_writes,
        "compactions": setup.max_compactions,
        "keys": len(setup.keys),
        "buckets": setup.partitions * setup.buckets,
    }
    return SearchBounds(bounded=tuple(f"{size} {name if size != 1 else name[:-1]}" for name, size in sizes.items()))


def processes(setup: Setup) -> tuple[Process, ...]:
    """Writers, compactors and perhaps one committer; jobs are told apart only where buckets or users are theirs."""
    users = setup.strict_mode and not setup.dedicated_compactors
    apart = setup.one_writer_per_bucket or setup.committer_apart or users
    writers = [Process(f"writer-{i + 1}", Idle(i if apart else 0, 0), "writer") for i in range(setup.num_writers)]
    compactors = [
        Process(f"compactor-{i + 1}", Idle(i if apart else 0, 0), "compactor") for i in range(setup.num_compactors)
    ]
    committer = [Process("committer", Idle(-1, 0), "committer")] if setup.committer_apart else []
    return (*writers, *compactors, *committer)


def empty_table(setup: Setup) -> Shared:
    """A table without a snapshot."""
    return Shared(
        buckets=(Bucket(),) * (setup.partitions * setup.buckets),
        expected=(Expected(),) * len(setup.keys),
        inserted=(False,) * len(setup.keys),
        ops_on=(0,) * len(setup.keys) if setup.max_writes_per_key else (),
    )


def is_final(shared: Shared, own: Own) -> bool:
    """A process rests when it has nothing under way and nothing waits for it, or when it has come to a bad end."""
    return own.phase == BAD or (own.phase == "idle" and not (own.actor < 0 and shared.queue))
