"""Every kind of finding: what it is, how bad it is unless the case says more, and what to do."""

from __future__ import annotations

from typing import NamedTuple

ROWS, MAY, NOTHING = "rows_wrong", "may_become_wrong", "nothing_lost"
SEVERITIES = {
    ROWS: "rows are wrong today, or cannot be read",
    MAY: "rows may become wrong, or those of an older snapshot are",
    NOTHING: "nothing is lost",
}
"""How bad a finding is, in words."""


class Kind(NamedTuple):
    """A kind of finding."""

    words: str
    severity: str
    advice: str


REPAIR = "run `lakeproof repair` with --plan: it says what it would set right"
RESTORE = "restore the file from a copy under the same name; `lakeproof repair` looks for one in the table's folder"
BACK = "restore the file from a copy, or roll back to a good snapshot (`lakeproof repair` names it)"
AGAIN = "compare the rows of these snapshots, and run the command again if they are wrong"
STOP = "an engine that does not follow the format wrote this: find out which, and stop it"

HISTORY = {
    "undelete": Kind(
        "a DELETE committed over an UPDATE that it did not see: the row's new version stays",
        ROWS,
        "run the DELETE again",
    ),
    "lost_update": Kind(
        "two commands gave one row a new version: both versions stay, or one is lost",
        ROWS,
        "find the rows that are there twice or were overwritten",
    ),
    "refused_commit": Kind("the policy would have refused this commit, or run it again", MAY, AGAIN),
    "rows_resurrected_by_rewrite": Kind(
        "a compaction wrote more rows than were live", ROWS, "roll back to the snapshot before it and compact again"
    ),
    "rows_lost_by_rewrite": Kind(
        "a compaction wrote fewer rows than were live", ROWS, "roll back to the snapshot before it and compact again"
    ),
}
METADATA = {
    "unreadable_metadata": Kind(
        "the metadata file is missing, or cannot be read",
        ROWS,
        "restore the metadata file from a copy, or register an older one from the table's metadata folder; until then "
        "remove no file of the table",
    ),
    "ref_to_nowhere": Kind("a branch or tag names a snapshot that is not there", MAY, REPAIR),
    "current_snapshot": Kind("the current snapshot is not the head of main, or is not there", ROWS, REPAIR),
    "snapshot_twice": Kind("two snapshots have one id", MAY, STOP),
    "wrong_parent": Kind("a snapshot names another parent than its manifest list", MAY, REPAIR),
    "parent_cycle": Kind("the line of parents runs in a circle", MAY, REPAIR),
    "snapshot_log": Kind("the log of snapshots is out of order, or names what is not there", MAY, REPAIR),
    "metadata_log": Kind("the log of metadata files is out of order, or names what is not there", NOTHING, REPAIR),
    "timestamps": Kind("times run backwards", MAY, REPAIR),
    "schema_ids": Kind("a schema id names no schema, or two of them", ROWS, REPAIR),
    "partition_spec_ids": Kind("a partition spec id names no spec, or two of them", ROWS, REPAIR),
    "sort_order_ids": Kind("a sort order id names no sort order, or two of them", NOTHING, REPAIR),
    "field_ids": Kind("a field id means two columns, or another column than in the files", ROWS, BACK),
    "last_sequence_number": Kind("the last sequence number is below one that was given away", MAY, REPAIR),
    "last_column_id": Kind("the last column id is below one that was given away", MAY, REPAIR),
    "last_partition_id": Kind("the last partition field id is below one that was given away", MAY, REPAIR),
    "statistics": Kind("statistics belong to no snapshot, or their file is gone", NOTHING, REPAIR),
    "format_version": Kind("the table holds what its format version does not have", ROWS, STOP),
    "sequence_numbers": Kind("sequence numbers are out of order", MAY, STOP),
}
MANIFESTS = {
    "missing_manifest_list": Kind("a snapshot's manifest list is not there", ROWS, RESTORE),
    "unreadable_manifest_list": Kind("a snapshot's manifest list cannot be read, or is cut", ROWS, BACK),
    "manifest_list_of_another": Kind("a snapshot names the manifest list of another snapshot", ROWS, BACK),
    "missing_manifest": Kind("a manifest is not there", ROWS, RESTORE),
    "unreadable_manifest": Kind("a manifest cannot be read, or is cut", ROWS, BACK),
    "manifest_length": Kind("a manifest has another size than its list says", MAY, REPAIR),
    "manifest_twice": Kind("a manifest list names a manifest twice", ROWS, REPAIR),
    "manifest_counts": Kind("a manifest holds other numbers of files or rows than its list says", MAY, REPAIR),
    "manifest_content": Kind("a manifest list takes data for deletes, or deletes for data", ROWS, REPAIR),
    "manifest_spec": Kind("a manifest list names another partition spec than the manifest", ROWS, REPAIR),
    "partition_summary": Kind("a manifest list says other partition values than the manifest holds", ROWS, REPAIR),
    "summary_totals": Kind("a snapshot's summary says other totals than its manifests hold", NOTHING, REPAIR),
    "entry_status": Kind(
        "an entry says added, existing or deleted where the snapshots before say otherwise", ROWS, BACK
    ),
}
FILES = {
    "missing_file": Kind("a file that the table names is not there", ROWS, RESTORE),
    "changed_file": Kind(
        "a file has another size than the table says", ROWS, "somebody wrote over it: restore it from a copy"
    ),
    "unreadable_file": Kind("a file cannot be read, or is of another format than the table says", ROWS, BACK),
    "file_format": Kind("a file is of another format than the table says", ROWS, REPAIR),
    "file_twice": Kind("a data file is in the table twice", ROWS, "remove it and add it once: `lakeproof repair` does"),
    "dangling_delete_file": Kind(
        "a delete file points to a data file that is not in the table", NOTHING, f"harmless to readers; {REPAIR}"
    ),
    "idle_delete_file": Kind(
        "a delete file is older than the file whose rows it names: it deletes nothing", ROWS, STOP
    ),
    "equality_ids": Kind("an equality delete names columns that are not there", ROWS, STOP),
    "record_count": Kind("a file holds another number of rows than the table says", ROWS, REPAIR),
    "null_counts": Kind("a column holds other numbers of values, nulls or NaNs than the table says", ROWS, REPAIR),
    "bounds": Kind("a column's values lie outside the bounds that the table says", ROWS, REPAIR),
    "wide_bounds": Kind("the bounds that the table says are wider than the column's values", NOTHING, REPAIR),
    "partition_values": Kind("rows lie in another partition than their values belong to", ROWS, BACK),
    "column_type": Kind("a file's column is of a type that the table's column cannot be read from", ROWS, BACK),
    "position_beyond_file": Kind("a delete file names positions that its data file does not have", MAY, STOP),
    "damaged_page": Kind("a page of a file cannot be read, or holds other values than its footer says", ROWS, BACK),
    "two_vectors": Kind(
        "a data file has more than one deletion vector", ROWS, "rewrite the data file: it cannot be read as it is"
    ),
    "vector_reference": Kind(
        "a deletion vector lies elsewhere in its file, or belongs to another data file", ROWS, BACK
    ),
    "vector_cardinality": Kind("a deletion vector holds another number of rows than the table says", ROWS, REPAIR),
    "damaged_vector": Kind("a deletion vector's length, magic bytes or checksum are wrong", ROWS, BACK),
    "next_row_id": Kind("the next row id was given away before", MAY, REPAIR),
    "row_ids_missing": Kind("a data file of format version 3 has no row ids", MAY, STOP),
    "row_ids_twice": Kind("two files share row ids", ROWS, STOP),
    "row_ids_changed": Kind("a file has other row ids than in an older snapshot", ROWS, STOP),
    "unreferenced_file": Kind(
        "a file is in the table's folders and nothing names it",
        NOTHING,
        "call system.remove_orphan_files once no writer is at work",
    ),
}
KINDS: dict[str, Kind] = {**HISTORY, **METADATA, **MANIFESTS, **FILES}
"""Every kind of finding."""
