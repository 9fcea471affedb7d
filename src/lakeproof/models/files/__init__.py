"""Files that are written and removed by writers, upkeep and readers; every decision is `commit/`'s."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lakeproof.checker.model import Model, Process, SearchBounds
from lakeproof.models import parameter_values as values
from lakeproof.models.files.bounds import PARAMETERS, PRESETS, SETTINGS, setup_from
from lakeproof.models.files.properties import properties
from lakeproof.models.files.steps import READER, WRITER, observe, steps_of
from lakeproof.models.files.upkeep_steps import MAINTAINER, TAGGER
from lakeproof.models.files.world import (
    AT_REST,
    DATA,
    LISTS,
    MANIFESTS,
    METADATA,
    NEIGHBOURS,
    AtRest,
    Data,
    Meta,
    Own,
    Rules,
    Setup,
    Shared,
    Snap,
)

__all__ = ["OURS", "PARAMETERS", "PRESETS", "build", "parameter_help"]

OURS = Rules("lakeproof")


def parameter_help() -> dict[str, str]:
    """What each parameter says, with its values and its default."""
    return SETTINGS.help()


def build(parameters: Mapping[str, str], rules: Rules = OURS) -> Model:
    """The model that the parameters describe, every process by these rules."""
    setup, word = setup_from(parameters, rules)
    limits = dict(setup.limits)
    maintainers = values.count("maintainers", word["maintainers"], 0, values.MOST_PROCESSES)
    names = {
        "writer": values.count("writers", word["writers"], 1, values.MOST_PROCESSES),
        "maintainer": maintainers if any(limits[w] for w in _UPKEEP) else 0,
        "tagger": min(1, limits["tag"]),
        "reader": min(1, limits["scan"]),
    }
    parts = {"writer": WRITER, "maintainer": MAINTAINER, "tagger": TAGGER, "reader": READER}
    return Model(
        name="files",
        shared=first_world(word["initial"], neighbour=word["neighbour"] == "true"),
        processes=tuple(Process(f"{kind}-{i + 1}", AT_REST, kind) for kind, size in names.items() for i in range(size)),
        steps={kind: steps_of(setup, parts[kind]) for kind, size in names.items() if size},
        properties=properties(setup),
        observe=partial(observe, setup),
        parameters={**SETTINGS.given(parameters), "rules": rules.name},
        is_final=is_final,
        bounds=bounds_of(setup, names),
    )


_UPKEEP = ("expiry", "orphans", "drop", "creation")


def first_world(initial: str, *, neighbour: bool) -> Shared:
    """The table in the beginning, with rows -1 and -2 that nobody in this run wrote."""
    beside = ("neighbour",) if neighbour else ()
    files = NEIGHBOURS if neighbour else ()
    if initial == "no-table":
        return Shared(None, tuple(sorted(files)), spent=beside)
    snapshots: list[Snap] = []
    for number in range(1, {"empty": 0, "one-row": 1, "two-snapshots": 2}[initial] + 1):
        manifests = f"{MANIFESTS}-first.{number}"
        before = snapshots[-1].files if snapshots and number == 1 else ()
        data = Data(f"{DATA}-first.{number}", (-number,), manifests, -number)
        listed = f"{LISTS}-first.{number}"
        snapshots.append(Snap(f"first.{number}", -number, number, listed, (*before, data)))
    table = Meta(f"{METADATA}-first", tuple(snapshots), last=len(snapshots))
    named = {*table.needed, *files}
    head = table.head
    return Shared(table, tuple(sorted(named)), spent=beside, acknowledged=head.rows if head else ())


def bounds_of(setup: Setup, processes: Mapping[str, int]) -> SearchBounds:
    """What a verdict on this set-up is about."""
    sizes = {f"{kind}s": size for kind, size in processes.items() if size}
    sizes |= {"commands": setup.max_commands}
    named = [f"{size} {name if size != 1 else name[:-1]}" for name, size in sizes.items()]
    happenings = [f"{what}: up to {size}" for what, size in setup.limits if size]
    return SearchBounds(bounded=(*named, f"retries: up to {setup.max_retries}", *happenings))


def is_final(shared: Shared, own: Own) -> bool:
    """Whoever has nothing in hand rests; a violated world is not followed any further."""
    return isinstance(own, AtRest) or bool(shared.violated)
