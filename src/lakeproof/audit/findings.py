"""One finding: what is wrong, where, why, and what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

KINDS = {
    "undelete": "a DELETE committed over an UPDATE that it did not see: the row's new version stays",
    "lost_update": "two commands gave one row a new version: both versions stay, or one is lost",
    "refused_commit": "the policy would have refused this commit, or run it again",
    "rows_resurrected_by_rewrite": "a compaction wrote more rows than were live",
    "rows_lost_by_rewrite": "a compaction wrote fewer rows than were live",
    "dangling_delete_file": "a delete file points to a data file that is not in the table",
    "missing_file": "a file that the table names is not there",
    "changed_file": "a file has another size than the table says",
    "sequence_numbers": "sequence numbers are out of order",
    "manifest_counts": "a manifest holds other numbers of files than its list says",
    "two_vectors": "a data file has more than one deletion vector",
    "file_twice": "a data file is in the table twice",
    "unreferenced_file": "a file is in the table's folders and nothing names it",
}
"""Every kind of finding, in words."""


class Finding(NamedTuple):
    """Something wrong: snapshots and files that show it, the reason, and what to do."""

    kind: str
    snapshots: tuple[int, ...]
    because: str
    files: tuple[str, ...] = ()
    check: str = ""
    do: str = ""
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as `lakeproof audit --json` prints it."""
        return {
            "kind": self.kind,
            "snapshots": list(self.snapshots),
            "because": self.because,
            "files": list(self.files),
            "check": self.check,
            "do": self.do,
            "note": self.note,
        }
