"""What must be true of every run, and what must be possible at all.

The judge writes what a commit violated into the shared value; older snapshots never change, so the newest one is all
that need be asked. What each judged property says is a function of its name in `judging.py`.
"""

from __future__ import annotations

from functools import partial

from lakeproof.checker.model import Property, always, eventually, eventually_each, never, reachable
from lakeproof.commit.change import Command, Mode
from lakeproof.commit.checks import OF_OTHERS, OF_READS, WINDOW_CHECKS, row_ids_given
from lakeproof.commit.policy import Policy, checks_of
from lakeproof.models.iceberg import judging
from lakeproof.models.iceberg.world import GIVEN, GIVEN_AGAIN, KEPT, Own, Ready, Setup, Shared, Writer

JUDGED = {
    judging.consistent_read.__name__: "ConsistentRead",
    judging.isolation_kept.__name__: "",
    judging.sequential_sequence_numbers.__name__: "SequentialSequenceNumbers",
    judging.no_dangling_delete_files.__name__: "NoDanglingDeleteFiles",
}
"""The properties of a commit, and what the public specification calls them."""


def properties(setup: Setup, policies: tuple[Policy, ...]) -> tuple[Property, ...]:
    """All properties of one configuration."""
    judged = [always(name, partial(_keeps, name), seed_name=seed) for name, seed in JUDGED.items()]
    if setup.table.next_row_id is not None:
        judged += [always(test.__name__, partial(_keeps, test.__name__)) for test in judging.ROW_IDS]
    return (
        *judged,
        *([never("no_false_aborts", "needless", counts=False)] if setup.measure else []),
        *(() if setup.endless else _progress()),  # where others never stop, a writer may lose every swap
        *_possible(setup, policies),
    )


def _progress() -> tuple[Property, ...]:
    name, seed = "operations_eventually_commit_or_abort", "OperationsEventuallyCommitOrAbort"
    ends = eventually("all_snapshots_committed", _nothing_open, seed_name="AllSnapshotsCommitted", symmetric=True)
    return eventually_each(name, _at_rest, seed_name=seed), ends


def _keeps(name: str, shared: Shared) -> bool:
    return name not in shared.violated


def _at_rest(shared: Shared, own: Own) -> bool:
    return isinstance(own, Ready) or bool(shared.violated)


def _nothing_open(shared: Shared, owns: tuple[Own, ...]) -> bool:
    return shared.under_way == 0 or bool(shared.violated)


def _possible(setup: Setup, policies: tuple[Policy, ...]) -> list[Property]:
    """One reachable property per command and per check branch, so that no invariant holds for want of events."""
    kinds = list(dict.fromkeys(command.command for command in setup.commands))
    if setup.max_compactions:
        kinds.append(Command.REWRITE)
    if setup.max_delete_rewrites:
        kinds.append(Command.REWRITE_DELETES)
    found = [reachable(f"some {kind} commits", f"{kind} commits") for kind in kinds]
    if setup.tracks_lost_swaps and len(policies) > 1:
        found.append(reachable("a swap is lost, validated again, then commits", "lost swap, then may commit"))
        found.append(reachable("a swap is lost, validated again, then refused", "lost swap, then refused"))
    if setup.max_compactions and any(policy.carries_deletes for policy in policies):
        found.append(reachable("some compaction carries deletes over", "deletes carried over"))
    checks = sorted({check for policy in policies for check in _window_checks(setup, policy)})
    found += [reachable(f"some commit is refused by {check}", f"refused by {check}") for check in checks]
    if setup.anybody is not None:
        found += [reachable(f"somebody else: {way}", f"somebody else: {way}") for way in setup.anybody.ways]
    if setup.unknown:
        found.append(reachable("some writer finds its own commit", "found its own commit"))
    if setup.table.next_row_id is not None:
        found += [reachable(name, mark) for name, mark in _possible_row_ids(setup, len(policies))]
    if setup.max_crashes:
        found.append(reachable("some writer crashes", "crash"))
    return found


def _possible_row_ids(setup: Setup, writers: int) -> list[tuple[str, str]]:
    """What may happen to row ids and vectors in this workload, and the mark of it."""
    kinds = {command.command for command in setup.commands}
    found = []
    if setup.max_compactions or kinds & {Command.UPDATE, Command.MERGE}:
        found.append(("some row keeps its id in another file", KEPT))
    if Command.INSERT in kinds:
        found.append(("some new row is given an id", GIVEN))
        ids = {row[0] for command in setup.commands for row in command.rows}
        if setup.tracks_lost_swaps and writers > 1 and len(ids) > 1:  # else two INSERTs are never under way
            found.append(("some new row is given an id after a lost swap", GIVEN_AGAIN))
    return found


def _window_checks(setup: Setup, policy: Policy) -> set[str]:
    """The checks that somebody else's commit can fail, of the commands in this workload."""
    writer = Writer(policy, setup)
    lists = [
        checks_of(
            policy,
            command.command,
            writer.plan(command).mode,
            setup.isolation_of(command),
            setup.shape.format_version,
        )
        for command in setup.commands
    ]
    if setup.max_compactions:
        lists.append(checks_of(policy, Command.REWRITE, Mode.COPY_ON_WRITE, setup.isolation))
    possible = set(OF_OTHERS) - (set() if setup.max_expiries else set(WINDOW_CHECKS))
    if not any(command.exists or command.select or command.meaning for command in setup.commands):
        possible.discard(OF_READS)  # nobody reads a row that it does not write
    if not setup.table.lacks_row_ids:
        possible.discard(row_ids_given.__name__)  # every scan sees the ids of its rows
    return {name for checks in lists for name in checks.names if name in possible}
