"""Small words for changes and snapshots, so that a table of cases reads as sentences."""

from __future__ import annotations

from typing import Any

from lakeproof.commit import Answer, Command, Isolation, Mode, TableChange, checks_of, followed_all, validate
from lakeproof.commit.policy import LAKEPROOF, Policy
from lakeproof.filters import Compare
from lakeproof.format import (
    DataFile,
    DeleteContent,
    DeleteFile,
    Move,
    Operation,
    RowMapping,
    Rows,
    Snapshot,
    TableShape,
    row_set,
    rows_of,
)

SHAPE = TableShape(("k", "v"))
SI, SER = Isolation.SNAPSHOT, Isolation.SERIALIZABLE
MOR, COW = Mode.MERGE_ON_READ, Mode.COPY_ON_WRITE
KEY_0 = Compare("k", "=", 0)


def at(**positions: list[int]) -> Rows:
    """Rows by file: `at(f=[0, 2])`."""
    return rows_of((file, row_set(listed)) for file, listed in positions.items())


def file(path: str, *rows: tuple[Any, ...], sequence_number: int = 0) -> DataFile:
    """A data file with these rows."""
    return DataFile(path, sequence_number=sequence_number, rows=rows)


F = file("f", (0, "a"), (1, "b"))
"""The file that everybody reads: row 0 has key 0, row 1 has key 1."""


def move(old: str, positions: list[int], new: str, start: int = 0) -> Move:
    """These rows of the old file lie in the new one from `start` on."""
    return Move(old, row_set(positions), new, start)


def snapshot(
    number: int,
    *,
    deletes: Rows | None = (),
    equality: Rows | None = (),
    adds: tuple[DataFile, ...] = (),
    removes: tuple[DataFile, ...] = (),
    mapping: RowMapping | None = None,
    operation: Operation | None = None,
    command_id: str = "",
) -> Snapshot:
    """Somebody else's commit. Its operation says what it did, unless it is told to say something else."""
    files = []
    if deletes is None or deletes:
        files.append(DeleteFile(f"delete-{number}", sequence_number=number, positions=deletes))
    if equality is None or equality:
        files.append(
            DeleteFile(f"equality-{number}", DeleteContent.EQUALITY, sequence_number=number, positions=equality)
        )
    said = Operation.OVERWRITE if adds and (files or removes) else Operation.APPEND if adds else Operation.DELETE
    return Snapshot(
        number,
        number,
        operation or said,
        parent_id=number - 1,
        added_data_files=adds,
        removed_data_files=removes,
        added_delete_files=tuple(files),
        mapping=mapping,
        command_id=command_id,
    )


def change(command: Command = Command.DELETE, **more: Any) -> TableChange:
    """A merge-on-read command under snapshot isolation that read row 0 of `f` at snapshot 1."""
    known = {
        "command_id": "mine",
        "scan_snapshot": 1,
        "scan_sequence_number": 1,
        "conflict_filter": KEY_0,
        "targets": at(f=[0]),
    }
    return TableChange(command, **{**known, **more})


def answered(wanted: TableChange, *unseen: Snapshot, policy: Policy = LAKEPROOF, **more: Any) -> Answer:
    """What validation says to the change when these snapshots were committed meanwhile."""
    checks = checks_of(policy, wanted.command, wanted.mode, wanted.isolation, SHAPE.format_version)
    window = followed_all(wanted, unseen, checks, SHAPE)
    return validate(wanted, window, policy, checks, shape=SHAPE, **more)
