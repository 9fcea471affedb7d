"""Which checks each engine asks of each command: the page to open to learn what a DELETE validates.

A policy is a table: command × mode × isolation × format version → checks, and what it does beside asking: whether a
conflict aborts the command or runs it again, whether deletes are carried over, how files are stamped and aged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from lakeproof.commit.change import Command, Isolation, Mode
from lakeproof.commit.checks import (
    CHANGE_CHECKS,
    HEAD_CHECKS,
    NEWEST_ONLY,
    OF_OTHERS,
    ROW_CHECKS,
    SNAPSHOT_CHECKS,
    Part,
    SnapshotCheck,
)

COW, MOR = Mode.COPY_ON_WRITE, Mode.MERGE_ON_READ
ROW_LEVEL = (Command.DELETE, Command.UPDATE, Command.MERGE)


class Line(NamedTuple):
    """One line of a policy. `mode` is `None` where the command has only one way of writing."""

    commands: tuple[Command, ...]
    mode: Mode | None = None
    always: tuple[str, ...] = ()
    snapshot: tuple[str, ...] = ()
    serializable: tuple[str, ...] = ()
    v3: tuple[str, ...] = ()


class Stamp(StrEnum):
    """The data sequence number that a compaction gives its output."""

    SCAN = "that of its scan snapshot"
    NEW = "the new snapshot's"
    MINIMUM = "the smallest of its inputs"
    MAXIMUM = "the largest of its inputs"


@dataclass(frozen=True)
class Policy:
    """A named set of commit rules."""

    name: str
    title: str
    lines: tuple[Line, ...]
    replaces_by_filter: bool = False  # an INSERT OVERWRITE drops what matches at the head, not what it planned
    always_copies: bool = False  # knows no merge-on-read
    never_copies: bool = False  # knows no copy-on-write
    only: tuple[Command, ...] = ()  # the commands that the engine has; none named: all
    filters_by_all_reads: bool = False  # else by the target's predicate alone, and a MERGE by nothing
    filters_by_nothing: bool = False  # everything that others do matters
    filters_by_written_partitions: bool = False  # only what others do to partitions that the command writes matters
    runs_again: bool = False
    carries_deletes: bool = False
    row_ids_at_first_try: bool = False  # numbers its new rows once, and keeps the numbers when it has lost its swap
    mints_row_ids: bool = False  # gives a row that it changes an id as if it were new
    squashes_upserts: bool = False  # upserts of one key that are committed together are written one beside the other
    maps_rewrites: bool = False
    maps_copy_on_write: bool = False
    falls_back_to_merge_on_read: bool = False
    finds_own_commit: bool = True
    drops_dangling_deletes: bool = False
    compaction_stamp: Stamp = Stamp.SCAN
    aging_counts_added_files: bool = False

    def runs(self, command: Command) -> bool:
        """Whether the engine has this command."""
        return not self.only or command in self.only

    def without(self, check: str) -> Policy:
        """The same policy that never asks this check."""
        lines = tuple(
            Line(line.commands, line.mode, *(tuple(c for c in part if c != check) for part in line[2:]))
            for line in self.lines
        )
        return replace(self, name=f"{self.name} without {check}", lines=lines)


_UPDATE_CHECKS = (
    "history_known",
    "data_files_exist",
    "no_new_delete_files",
    "missing_delete_paths",
    "no_deletes_in_removed_files",
    "delete_files_fit_format_version",
)

ICEBERG_SPARK = Policy(
    name="iceberg-spark",
    title="Apache Iceberg 1.11 on Spark 4.1, as it is",
    lines=(
        Line((Command.INSERT, Command.INSERT_SELECT, Command.UPSERT)),
        Line((Command.OVERWRITE_PARTITIONS,)),
        Line((Command.OVERWRITE, Command.METADATA_DELETE), always=("whole_files_match",)),
        Line(
            (Command.DELETE,),
            MOR,
            always=(
                "history_known",
                "data_files_exist_skipping_deletes",
                "no_deletes_in_removed_files",
                "delete_files_fit_format_version",
            ),
            serializable=("added_data_files",),
            v3=("added_vectors",),
        ),
        Line(
            (Command.UPDATE, Command.MERGE),
            MOR,
            always=_UPDATE_CHECKS,
            serializable=("added_data_files",),
            v3=("added_vectors",),
        ),
        Line(
            ROW_LEVEL,
            COW,
            always=("history_known", "no_new_deletes_for_data_files", "missing_delete_paths"),
            serializable=("added_data_files",),
        ),
        Line(
            (Command.REWRITE,),
            always=("history_known", "no_new_position_deletes_for_data_files", "missing_delete_paths"),
        ),
        Line((Command.REWRITE_DELETES,), always=("history_known", "missing_delete_paths")),
    ),
    replaces_by_filter=True,
)

ICEBERG_SPARK_FIXED = replace(
    ICEBERG_SPARK,
    name="iceberg-spark-fixed",
    title="the same, with a merge-on-read DELETE that asks what an UPDATE asks",
    lines=tuple(
        line._replace(always=_UPDATE_CHECKS) if line.commands == (Command.DELETE,) and line.mode is MOR else line
        for line in ICEBERG_SPARK.lines
    ),
    aging_counts_added_files=True,
)

PYICEBERG = Policy(
    name="pyiceberg",
    title="PyIceberg 0.12: copy-on-write only, and its delete check looks at the newest snapshot alone",
    lines=(
        Line((Command.INSERT, Command.INSERT_SELECT, Command.UPSERT)),
        Line(  # by a filter: delete(), overwrite()
            (Command.DELETE, Command.METADATA_DELETE, Command.OVERWRITE, Command.OVERWRITE_PARTITIONS),
            None,
            always=(
                "history_known",
                "no_new_delete_files",
                "deleted_data_files",
                "no_new_deletes_for_data_files_at_head",
                "missing_delete_paths",
                "whole_files_match",
            ),
            serializable=("added_data_files",),
        ),
        Line(  # file by file, as a program must that updates or compacts: update_snapshot().overwrite()
            (Command.UPDATE, Command.MERGE, Command.REWRITE),
            None,
            always=(
                "history_known",
                "no_new_deletes_for_data_files_at_head",
                "deleted_data_files",
                "missing_delete_paths",
            ),
            serializable=("added_data_files",),
        ),
        Line((Command.REWRITE_DELETES,), always=("history_known", "missing_delete_paths")),
    ),
    always_copies=True,
    compaction_stamp=Stamp.NEW,
)

LAKEPROOF = Policy(
    name="lakeproof",
    title="Lakeproof: rows, not files; a conflict that re-reading resolves is resolved",
    lines=(
        Line((Command.INSERT, Command.UPSERT)),
        Line((Command.INSERT_SELECT,), serializable=("history_known", "rows_read", "new_rows_match")),
        Line(
            ROW_LEVEL,
            MOR,
            always=("history_known", "target_rows", "delete_files_fit_format_version", "row_ids_given"),
            serializable=("rows_read", "new_rows_match"),
        ),
        Line(
            ROW_LEVEL,
            COW,
            always=("history_known", "target_rows", "replaced_files", "row_ids_given"),
            serializable=("rows_read", "new_rows_match"),
        ),
        Line(
            (Command.METADATA_DELETE, Command.OVERWRITE, Command.OVERWRITE_PARTITIONS),
            None,
            always=("history_known", "target_rows", "replaced_files", "whole_files_match"),
            serializable=("rows_read", "new_rows_match"),
        ),
        Line((Command.REWRITE,), always=("history_known", "replaced_files", "row_ids_given")),
        Line((Command.REWRITE_DELETES,), always=("history_known", "missing_delete_paths")),
    ),
    filters_by_all_reads=True,
    runs_again=True,
    carries_deletes=True,
    maps_rewrites=True,
    maps_copy_on_write=True,
    falls_back_to_merge_on_read=True,
    drops_dangling_deletes=True,
    aging_counts_added_files=True,
)


def without_mapping(policy: Policy) -> Policy:
    """The policy for a rewrite that records no places: what others delete of its rows is a conflict."""
    asked = ("history_known", "no_new_position_deletes_for_data_files", "missing_delete_paths", "row_ids_given")
    lines = tuple(line._replace(always=asked) if line.commands == (Command.REWRITE,) else line for line in policy.lines)
    return replace(policy, lines=lines, maps_rewrites=False, carries_deletes=False)


POLICIES = {policy.name: policy for policy in (ICEBERG_SPARK, ICEBERG_SPARK_FIXED, PYICEBERG, LAKEPROOF)}


class CheckList(NamedTuple):
    """The checks of one command, sorted by what they look at."""

    names: tuple[str, ...]
    snapshot: tuple[tuple[str, SnapshotCheck], ...]
    newest: tuple[tuple[str, SnapshotCheck], ...]
    change: tuple[str, ...]
    head: frozenset[str]
    rows: frozenset[str]
    needs: Part
    asks_history: bool


@lru_cache(maxsize=4096)
def check_list(names: tuple[str, ...]) -> CheckList:
    """The named checks, ready to be asked in the order given."""
    parts = [both[name][1] for both in (SNAPSHOT_CHECKS, NEWEST_ONLY) for name in names if name in both]
    rows = frozenset(name for name in names if name in ROW_CHECKS)
    head = frozenset(name for name in names if name in HEAD_CHECKS)
    if rows:
        parts.append(Part(True, True, True))
    if "missing_delete_paths" in head:
        parts.append(Part(removed_data_files=True))
    return CheckList(
        names=names,
        snapshot=tuple((name, SNAPSHOT_CHECKS[name][0]) for name in names if name in SNAPSHOT_CHECKS),
        newest=tuple((name, NEWEST_ONLY[name][0]) for name in names if name in NEWEST_ONLY),
        change=tuple(name for name in names if name in CHANGE_CHECKS),
        head=head,
        rows=rows,
        needs=Part(*(any(column) for column in zip(*parts, strict=True))) if parts else Part(),
        asks_history="history_known" in names,
    )


TABLE_API: dict[str, tuple[str, ...]] = {
    "append": (),
    "rowdelta": ("no_deletes_in_removed_files", "delete_files_fit_format_version", "added_vectors"),
    "overwrite": (),
    "rewrite": ("no_new_deletes_for_data_files", "missing_delete_paths"),
    "replace-partitions": (),
    "delete-files": ("whole_files_match",),
}
"""What each call of Iceberg's table API asks without being told; `rewrite` with a kept sequence number asks less."""


def api_checks(call: str, more: tuple[str, ...], *, exists: bool, keeps_sequence_number: bool) -> CheckList:
    """What a call of the table API asks: what it always does, and those switched on; whoever looks back, all of it."""
    names = [*TABLE_API[call], *more]
    if call == "rewrite" and keeps_sequence_number:
        names[0] = "no_new_position_deletes_for_data_files"
    if exists and "data_files_exist" not in names:
        names.append("data_files_exist_skipping_deletes")
    looks_back = any(name in OF_OTHERS for name in names)
    return check_list(tuple(dict.fromkeys((*(("history_known",) * looks_back), *names))))


@lru_cache(maxsize=4096)
def checks_of(policy: Policy, command: Command, mode: Mode, isolation: Isolation, format_version: int = 2) -> CheckList:
    """What a policy asks of a command: the first line that fits."""
    for line in policy.lines:
        if command in line.commands and line.mode in (None, mode):
            more = line.serializable if isolation is Isolation.SERIALIZABLE else line.snapshot
            names = (*line.always, *more, *(line.v3 if format_version >= 3 else ()))
            return check_list(tuple(dict.fromkeys(names)))
    raise LookupError(f"policy {policy.name} says nothing of {command} ({mode})")
