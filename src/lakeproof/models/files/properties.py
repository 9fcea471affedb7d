"""What must be true of every world in which files are removed, and what must be possible at all."""

from __future__ import annotations

from lakeproof.checker.model import Property, always, eventually, never, reachable
from lakeproof.models.files.world import NEIGHBOURS, AtRest, Own, Setup, Shared, command_of


def committed_snapshots_are_whole(shared: Shared) -> bool:
    """Every file that the table's metadata names is there, and so is every file of the table beside it."""
    neighbours = shared.used("neighbour") * NEIGHBOURS
    needed = shared.table.needed if shared.table is not None else ()
    return {*needed, *neighbours} <= {*shared.store}


def acknowledged_rows_stay(shared: Shared) -> bool:
    """A row whose INSERT was acknowledged is in the table until the table is dropped, and a column stays too."""
    head = shared.table.head if shared.table is not None else None
    rows = head.rows if head is not None else ()
    columns = shared.table.schema if shared.table is not None else shared.used("altered")
    return {*shared.acknowledged} <= {*rows, *shared.dropped} and columns >= shared.used("altered")


def no_command_commits_twice(shared: Shared) -> bool:
    """No command has two snapshots, and no row is in the table twice."""
    head = shared.table.head if shared.table is not None else None
    rows = head.rows if head is not None else ()
    return len(shared.landed) == len({*shared.landed}) and len(rows) == len({*rows})


def what_failed_is_not_there(shared: Shared) -> bool:
    """A command that was said to have failed has no snapshot."""
    return not {*shared.denied} & {*shared.landed}


def only_orphans_are_left(shared: Shared) -> bool:
    """Where nobody is at work, a file that nothing names was left by a command that died or heard nothing."""
    if shared.under_way or shared.upkeep:
        return True
    needed = shared.table.needed if shared.table is not None else frozenset[str]()
    strays = [path for path in shared.store if path not in needed and path not in NEIGHBOURS]
    return {*strays} <= {*shared.left}


def tags_stay(shared: Shared) -> bool:
    """Nobody drops a tag that somebody has just made."""
    return "tags_stay" not in shared.violated


def row_ids_are_unique(shared: Shared) -> bool:
    """No two files of the head number their rows alike (format v3)."""
    head = shared.table.head if shared.table is not None else None
    first = [file.first_row_id for file in (head.files if head else ()) if file.rows == (command_of(file.path),)]
    return len(first) == len({*first})


JUDGED = (
    committed_snapshots_are_whole,
    acknowledged_rows_stay,
    no_command_commits_twice,
    what_failed_is_not_there,
    only_orphans_are_left,
    tags_stay,
    row_ids_are_unique,
)


def _nobody_at_work(shared: Shared, owns: tuple[Own, ...]) -> bool:
    return bool(shared.violated) or all(isinstance(own, AtRest) for own in owns)


def properties(setup: Setup) -> tuple[Property, ...]:
    """All properties of one configuration."""
    limits = dict(setup.limits)
    found = [always(test.__name__, test) for test in JUDGED]
    if limits.get("scan"):
        found.append(never("scans_are_whole", "a scan misses rows"))
    found.append(eventually("everybody_comes_to_rest", _nobody_at_work, symmetric=True))
    found += [reachable(f"some {kind} starts", f"{kind} starts") for kind in setup.commands if setup.max_commands]
    found.append(reachable("some command commits", "commits"))
    if limits.get("lost answer"):
        found.append(reachable("some writer finds its own commit", "finds its own commit"))
    leaves = limits.get("crash") and not setup.neighbour
    for what in ("expiry", "drop", *(("orphans",) if leaves else ())):
        if limits.get(what):
            found.append(reachable(f"some {what} removes a file", f"{what} removes a file"))
    if limits.get("scan"):
        found.append(reachable("some scan ends", "a scan ends"))
        if limits.get("expiry"):
            found.append(reachable("some scan begins again", "a scan begins again"))
    return tuple(found)
