"""How a command commits, decided once: its mode, its conflict filter, by files or by filter, and how often again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from lakeproof.commit.change import Command, Isolation, Mode, TableChange
from lakeproof.commit.conflict import Conflict
from lakeproof.commit.policy import ROW_LEVEL, Policy
from lakeproof.commit.validation import RunAgain
from lakeproof.filters import ALWAYS, Expression

T = TypeVar("T")
MAX_RERUNS = 5
WHOLE_FILES = (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS, Command.METADATA_DELETE)
"""Commands that take files whole: they copy nothing and delete no position."""


class Plan(NamedTuple):
    """How a command commits. `by_filter`: what leaves the table is found at the head, not named at the scan."""

    command: Command
    mode: Mode
    isolation: Isolation
    conflict_filter: Expression = ALWAYS
    by_filter: bool = False
    squashes_upserts: bool = False  # of one key, all rows are written, not the last alone
    by_written_partitions: bool = False  # the filter is narrowed to the partitions of what was written
    mints_row_ids: bool = False  # a row that changes gets the id of a new one

    def change(self, *, command_id: str, scan_snapshot: int | None, scan_sequence_number: int) -> TableChange:
        """The change before anything is added or removed."""
        return TableChange(
            self.command,
            self.mode,
            self.isolation,
            command_id,
            scan_snapshot,
            scan_sequence_number,
            conflict_filter=self.conflict_filter,
        )


def mode_for(command: Command, policy: Policy, table_mode: Mode, again: RunAgain | None = None) -> Mode:
    """How a command writes: as the table says, unless its policy, its kind or the conflict of its last run say else."""
    if policy.always_copies or command in WHOLE_FILES:
        return Mode.COPY_ON_WRITE
    if policy.never_copies and command in ROW_LEVEL:
        return Mode.MERGE_ON_READ
    return again.mode if again is not None and command in ROW_LEVEL else table_mode


def conflict_filter(command: Command, policy: Policy, *, target: Expression, everything: Expression) -> Expression:
    """Which concurrent files and rows matter: those like what the command writes, or like everything that it read."""
    if policy.filters_by_nothing:
        return ALWAYS
    if policy.filters_by_all_reads:
        return everything
    return ALWAYS if command is Command.MERGE else target


def replaces_by_filter(command: Command, policy: Policy, *, can_run_again: bool = True) -> bool:
    """Whether what a command takes whole is found at the head: who names files at the scan may have to run again."""
    return command in WHOLE_FILES and (policy.replaces_by_filter or not can_run_again)


class Run(NamedTuple):
    """One run of a command: how many came before it, and why it runs again."""

    reruns: int = 0
    again: RunAgain | None = None

    def left(self, most: int = MAX_RERUNS) -> bool:
        """Whether another may follow."""
        return self.reruns < most


def run_until_done(once: Callable[[Run], T | RunAgain], on_rerun: Callable[[Run, Conflict], None]) -> tuple[T, Run]:
    """Run a command from the head until it is not told to run again; what it gave, and the run that gave it."""
    run = Run()
    while isinstance(answer := once(run), RunAgain):
        run = Run(run.reruns + 1, answer)
        on_rerun(run, answer.conflict)
    return answer, run
