"""A conflict in words, once for the exception that a user sees and for the report of a counterexample."""

from __future__ import annotations

from collections.abc import Sequence

from lakeproof.commit.change import TableChange
from lakeproof.commit.conflict import Conflict

_DELETED_FROM = "{who} added {files}, which deletes rows of a file that the {command} replaces"
_BECAUSE = {
    "added_data_files": "{who} added {files}, which may hold rows that the {command} reads",
    "data_files_exist": "{who} removed {files}, which the {command} deletes rows from",
    "data_files_exist_skipping_deletes": "{who} replaced {files}, which the {command} deletes rows from",
    "no_new_delete_files": "{who} added {files}, which may delete rows that the {command} reads",
    "no_new_deletes_for_data_files": _DELETED_FROM,
    "no_new_deletes_for_data_files_at_head": _DELETED_FROM,
    "no_new_position_deletes_for_data_files": _DELETED_FROM,
    "deleted_data_files": "{who} removed {files}, which may hold rows that the {command} reads",
    "added_vectors": "{who} added {files}, a deletion vector of a file that the {command} deletes from",
    "no_deletes_in_removed_files": "the change removes {files} and also deletes rows of it",
    "delete_files_fit_format_version": "{files} holds deletes in a form that the table's format version does not take",
    "added_files_match_overwrite_filter": "{files} may hold rows outside the overwrite's filter",
    "missing_delete_paths": "{files}, which the {command} removes, is no longer in the table",
    "whole_files_match": "some but perhaps not all rows of {files} match the filter",
    "row_ids_given": "{who} gave ids to the rows of the table, and the {command} wrote rows again that had none",
    "replaced_files": "{who} replaced {files}, whose rows the {command} rewrites",
    "new_rows_match": "a row was added in {files} that the {command} would have read",
    "rows_read": "{who} changed rows of {files} that the {command} read",
    "history_known": "a snapshot between the scan and the head was expired, so nobody can say what happened meanwhile",
}
_FATES = {
    "updated": "{who} updated rows of {files} that the {command} writes too",
    "deleted": "{who} deleted rows of {files} that the {command} rewrites",
    "lost": "{who} changed {files} without recording what became of its rows",
}


def because(conflict: Conflict, command: str) -> str:
    """Why the check says no, in one sentence without a full stop."""
    sentence = _BECAUSE.get(conflict.check)
    if conflict.check == "target_rows" or conflict.fate == "lost":
        sentence = _FATES.get(conflict.fate)
    who = f"snapshot {conflict.snapshot}" if conflict.snapshot is not None else "somebody else"
    return (sentence or "the check said no").format(who=who, files=listed(conflict.files), command=command)


def explain_conflict(
    conflict: Conflict, change: TableChange, *, table: str, head: int | None, scanned: int | None
) -> str:
    """The whole message: what was not committed, which check, because of what, and what to do next."""
    lines = [
        f"{change.command} on {table} was not committed",
        f"  check    {conflict.check}",
        f"  because  {because(conflict, str(change.command))}",
        f"  read at  {_named(scanned)}; the table is now at {_named(head)}",
        f"  next     run the {change.command} again; it will scan {_named(head)}",
    ]
    return "\n".join(lines)


def unknown_outcome(command: str, table: str, snapshots: Sequence[int]) -> str:
    """What is said when nobody knows whether a command was committed, and what to look for."""
    ids = " or ".join(str(snapshot) for snapshot in snapshots)
    return (
        f"nobody knows whether {command} on {table} was committed; look for snapshot {ids} before running it again\n"
        f"  next     if the table lists it, the {command} is done; nothing of it was removed"
    )


def listed(names: tuple[str, ...]) -> str:
    """At most three names, without their folders, and how many more; the conflict itself has the whole paths.

    >>> listed(("s3://lake/t/data/a", "b", "c", "d"))
    'a, b, c and 1 more'
    """
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (", ".join(name.rpartition("/")[2] for name in names[:3]) + more) or "a file"


def _named(snapshot: int | None) -> str:
    return "an empty table" if snapshot is None else f"snapshot {snapshot}"
