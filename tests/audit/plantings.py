"""Planted faults as data: what is damaged, and the kinds and the severity that an audit must say of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from damaging import (
    Words,
    change_lists,
    change_manifest,
    change_words,
    delete_file,
    first_file,
    first_manifest,
    flip,
    head_of,
    restated,
    rewrite_file,
    set_line,
)
from lakehouse import path_of
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    DataFile,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)

from lakeproof.iceberg.pyiceberg_names import Table

ROWS, MAY, NOTHING = "rows_wrong", "may_become_wrong", "nothing_lost"
DELETED = ManifestEntryStatus.DELETED
DELETES = ManifestContent.DELETES


class Planting(NamedTuple):
    """A fault: how it is planted, what must be found (the first kind is the fault's own), and how bad it is."""

    plant: Callable[[Table], None]
    kinds: tuple[str, ...]
    severity: str
    depth: str = ""
    base: str = "plain"

    @property
    def name(self) -> str:
        return getattr(self.plant, "said", self.plant.__name__).replace("_", " ")


PLANTINGS: list[Planting] = []


def planted(*kinds: str, severity: str, depth: str = "", base: str = "plain") -> Callable[[Any], Any]:
    """Put a fault into the table of faults."""

    def put(plant: Callable[[Table], None]) -> Callable[[Table], None]:
        PLANTINGS.append(Planting(plant, kinds, severity, depth, base))
        return plant

    return put


def words_planted(said: str, *kinds: str, severity: str) -> Callable[[Callable[[Words], None]], None]:
    """A fault of the metadata file alone."""

    def put(change: Callable[[Words], None]) -> None:
        def plant(table: Table) -> None:
            change_words(table, change)

        plant.said = said  # type: ignore[attr-defined]
        PLANTINGS.append(Planting(plant, kinds, severity))

    return put


# ---------------------------------------------------------------- the metadata file


@planted("unreadable_metadata", severity=ROWS)
def the_metadata_file_is_cut(table: Table) -> None:
    path = path_of(table.metadata_location)
    path.write_bytes(path.read_bytes()[:300])


@planted("unreadable_metadata", severity=ROWS)
def the_metadata_file_is_gone(table: Table) -> None:
    path_of(table.metadata_location).unlink()


@words_planted("the metadata have no snapshots of the right shape", "unreadable_metadata", severity=ROWS)
def _(words: Words) -> None:
    words["snapshots"] = [7]


@words_planted("the metadata say no location", "unreadable_metadata", severity=ROWS)
def _(words: Words) -> None:
    del words["location"]


@words_planted("a format version that nobody knows", "format_version", severity=ROWS)
def _(words: Words) -> None:
    words["format-version"] = 9


@words_planted("a tag to nowhere", "ref_to_nowhere", severity=MAY)
def _(words: Words) -> None:
    words["refs"]["monthly"] = {"snapshot-id": 12345, "type": "tag"}


@words_planted("a branch to nowhere", "ref_to_nowhere", severity=MAY)
def _(words: Words) -> None:
    words["refs"]["work"] = {"snapshot-id": 12345, "type": "branch"}


@words_planted("main to nowhere", "ref_to_nowhere", "current_snapshot", severity=ROWS)
def _(words: Words) -> None:
    words["refs"]["main"]["snapshot-id"] = 12345


@words_planted("the current snapshot is not main's", "current_snapshot", "snapshot_log", severity=ROWS)
def _(words: Words) -> None:
    words["current-snapshot-id"] = words["snapshots"][0]["snapshot-id"]


@words_planted("the current snapshot is not there", "current_snapshot", severity=ROWS)
def _(words: Words) -> None:
    words["current-snapshot-id"] = 12345


@words_planted("a snapshot twice", "snapshot_twice", severity=MAY)
def _(words: Words) -> None:
    words["snapshots"].append({**words["snapshots"][0], "sequence-number": 0})


@words_planted("a parent is skipped", "wrong_parent", severity=MAY)
def _(words: Words) -> None:
    head_of(words)["parent-snapshot-id"] = words["snapshots"][-3]["snapshot-id"]


@words_planted("a parent that does not exist", "wrong_parent", severity=MAY)
def _(words: Words) -> None:
    head_of(words)["parent-snapshot-id"] = 12345


@words_planted("a snapshot without its parent", "wrong_parent", severity=MAY)
def _(words: Words) -> None:
    head_of(words).pop("parent-snapshot-id")


@words_planted("a cycle of parents", "parent_cycle", "sequence_numbers", "wrong_parent", severity=MAY)
def _(words: Words) -> None:
    words["snapshots"][0]["parent-snapshot-id"] = head_of(words)["snapshot-id"]


@words_planted("a snapshot that is its own parent", "parent_cycle", "wrong_parent", severity=MAY)
def _(words: Words) -> None:
    head_of(words)["parent-snapshot-id"] = head_of(words)["snapshot-id"]


@words_planted("a log entry of a snapshot that is not there", "snapshot_log", severity=MAY)
def _(words: Words) -> None:
    words["snapshot-log"].insert(0, {"snapshot-id": 12345, "timestamp-ms": 1})


@words_planted("a log of snapshots out of order", "snapshot_log", severity=MAY)
def _(words: Words) -> None:
    words["snapshot-log"][0]["timestamp-ms"] += 10**8


@words_planted("a log that lacks the head", "snapshot_log", severity=MAY)
def _(words: Words) -> None:
    words["snapshot-log"].pop()


@words_planted("a log of metadata files that names one twice", "metadata_log", severity=NOTHING)
def _(words: Words) -> None:
    words["metadata-log"].append(words["metadata-log"][-1])


@words_planted("a log of metadata files out of order", "metadata_log", severity=NOTHING)
def _(words: Words) -> None:
    words["metadata-log"][0]["timestamp-ms"] += 10**8


@planted("metadata_log", severity=NOTHING)
def an_earlier_metadata_file_is_gone(table: Table) -> None:
    path_of(table.metadata.metadata_log[0].metadata_file).unlink()


@words_planted("a child that is older than its parent", "timestamps", severity=MAY)
def _(words: Words) -> None:
    words["snapshots"][1]["timestamp-ms"] -= 10**8


@words_planted("metadata that are older than their snapshots", "timestamps", severity=NOTHING)
def _(words: Words) -> None:
    words["last-updated-ms"] -= 10**8


@words_planted("a current schema that is not there", "schema_ids", severity=ROWS)
def _(words: Words) -> None:
    words["current-schema-id"] = 77


@words_planted("a snapshot of a schema that is not there", "schema_ids", severity=MAY)
def _(words: Words) -> None:
    words["snapshots"][0]["schema-id"] = 77


@words_planted("a default partition spec that is not there", "partition_spec_ids", severity=ROWS)
def _(words: Words) -> None:
    words["default-spec-id"] = 77


@words_planted("a default sort order that is not there", "sort_order_ids", severity=NOTHING)
def _(words: Words) -> None:
    words["default-sort-order-id"] = 77


@words_planted("two columns of one field id", "field_ids", severity=ROWS)
def _(words: Words) -> None:
    words["schemas"][0]["fields"][1]["id"] = 1


@words_planted("a key of a column that is not there", "field_ids", severity=MAY)
def _(words: Words) -> None:
    words["schemas"][0]["identifier-field-ids"] = [99]


@words_planted("a last sequence number that is too low", "last_sequence_number", severity=MAY)
def _(words: Words) -> None:
    words["last-sequence-number"] = 1


@words_planted("a last column id that is too low", "last_column_id", severity=MAY)
def _(words: Words) -> None:
    words["last-column-id"] = 1


@words_planted("statistics of a snapshot that is not there", "statistics", severity=NOTHING)
def _(words: Words) -> None:
    words["statistics"] = [statistics_of(words, 12345, words["metadata-log"][0]["metadata-file"])]


@words_planted("statistics whose file is gone", "statistics", severity=NOTHING)
def _(words: Words) -> None:
    words["statistics"] = [statistics_of(words, head_of(words)["snapshot-id"], "file:///nowhere/s.puffin")]


def statistics_of(words: Words, snapshot: int, path: str) -> Words:
    said = {"snapshot-id": snapshot, "statistics-path": path, "file-size-in-bytes": 1}
    return {**said, "file-footer-size-in-bytes": 1, "blob-metadata": []}


@words_planted("a sequence number that is its parent's", "sequence_numbers", severity=MAY)
def _(words: Words) -> None:
    head_of(words)["sequence-number"] = words["snapshots"][-2]["sequence-number"]


@planted("last_partition_id", severity=MAY, base="partitioned")
def a_last_partition_field_id_that_is_too_low(table: Table) -> None:
    change_words(table, lambda words: words.update({"last-partition-id": 999}))


@planted("field_ids", severity=ROWS, base="partitioned")
def a_partition_field_of_a_column_that_is_not_there(table: Table) -> None:
    change_words(table, lambda words: words["partition-specs"][0]["fields"][0].update({"source-id": 99}))


# ---------------------------------------------------------------- lists and manifests


def list_at(table: Table, place: int) -> Path:
    return path_of(table.metadata.snapshots[place].manifest_list)


@planted("missing_manifest_list", severity=ROWS)
def the_head_s_list_is_gone(table: Table) -> None:
    list_at(table, -1).unlink()


@planted("missing_manifest_list", severity=MAY)
def the_list_of_an_older_snapshot_is_gone(table: Table) -> None:
    list_at(table, 0).unlink()


@planted("unreadable_manifest_list", severity=ROWS)
def the_head_s_list_is_cut_after_its_header(table: Table) -> None:
    from lakeproof.iceberg.reading.avro import read_header

    place = list_at(table, -1)
    place.write_bytes(place.read_bytes()[: read_header(place.read_bytes()).body])


@planted("unreadable_manifest_list", severity=ROWS)
def the_head_s_list_is_cut_in_the_middle(table: Table) -> None:
    place = list_at(table, -1)
    place.write_bytes(place.read_bytes()[:-40])


@planted("unreadable_manifest_list", severity=ROWS)
def a_flipped_byte_in_the_head_s_list(table: Table) -> None:
    flip(list_at(table, -1), -3)


@planted("manifest_list_of_another", "summary_totals", severity=ROWS)
def a_list_of_another_snapshot(table: Table) -> None:
    shutil.copy(list_at(table, 0), list_at(table, -1))


@planted("entry_status", "summary_totals", "dangling_delete_file", severity=ROWS)
def a_line_of_the_list_is_lost(table: Table) -> None:
    change_lists(table, lambda lines: [each for each in lines if each.sequence_number != 1], only=-1)


@planted("entry_status", "summary_totals", severity=ROWS)
def a_line_of_deletes_is_lost(table: Table) -> None:
    keep = lambda lines: [m for m in lines if m.content != DELETES or m.sequence_number == 4]  # noqa: E731
    change_lists(table, keep, only=-1)


@planted("manifest_twice", "summary_totals", severity=ROWS)
def a_manifest_twice_in_a_list(table: Table) -> None:
    change_lists(table, lambda lines: [*lines, lines[-1]], only=-1)


@planted("missing_manifest", severity=ROWS)
def a_manifest_is_gone(table: Table) -> None:
    path_of(first_manifest(table).manifest_path).unlink()


@planted("unreadable_manifest", severity=ROWS)
def a_manifest_is_cut(table: Table) -> None:
    place = path_of(first_manifest(table).manifest_path)
    place.write_bytes(place.read_bytes()[:-30])


@planted("unreadable_manifest", severity=ROWS)
def a_flipped_byte_in_a_manifest(table: Table) -> None:
    flip(path_of(first_manifest(table).manifest_path), -5)


@planted("unreadable_manifest", severity=ROWS)
def a_manifest_is_something_else(table: Table) -> None:
    path_of(first_manifest(table).manifest_path).write_bytes(b"not a manifest")


def line_set(name: str, value: Any) -> Callable[[list[ManifestFile]], None]:
    """The oldest data manifest's line says something else."""

    def change(lines: list[ManifestFile]) -> None:
        oldest = min((m for m in lines if m.content != DELETES), key=lambda m: m.sequence_number)
        set_line(oldest, name, value)

    return change


@planted("manifest_length", severity=MAY)
def a_manifest_of_another_length(table: Table) -> None:
    change_lists(table, line_set("manifest_length", 17))


@planted("manifest_counts", severity=MAY)
def a_list_that_counts_other_files(table: Table) -> None:
    change_lists(table, line_set("added_files_count", 8))


@planted("manifest_counts", severity=ROWS)
def a_list_that_says_that_nothing_is_live(table: Table) -> None:
    change_lists(table, line_set("added_files_count", 0))


@planted("manifest_counts", severity=MAY)
def a_list_that_counts_other_rows(table: Table) -> None:
    change_lists(table, line_set("added_rows_count", 800))


@planted("sequence_numbers", severity=MAY)
def a_list_that_says_that_nothing_is_old(table: Table) -> None:
    change_lists(table, line_set("min_sequence_number", 9))


@planted("sequence_numbers", severity=MAY)
def a_manifest_of_another_sequence_number(table: Table) -> None:
    change_lists(table, line_set("sequence_number", 2), only=-1)


@planted("manifest_content", "dangling_delete_file", "summary_totals", severity=ROWS)
def a_list_that_takes_data_for_deletes(table: Table) -> None:
    change_lists(table, line_set("content", DELETES), only=-1)


@planted("partition_spec_ids", "manifest_spec", severity=ROWS)
def a_manifest_of_a_spec_that_is_not_there(table: Table) -> None:
    change_lists(table, line_set("partition_spec_id", 5))


@planted("partition_summary", severity=ROWS, base="partitioned")
def a_wrong_partition_summary(table: Table) -> None:
    def change(lines: list[ManifestFile]) -> None:
        for line in lines:
            for field in line.partitions or []:
                field[FIELD_UPPER] = field.lower_bound

    change_lists(table, change)


FIELD_UPPER = 3


@words_planted("a summary of other totals", "summary_totals", severity=NOTHING)
def _(words: Words) -> None:
    head_of(words)["summary"]["total-records"] = "1234"


# ---------------------------------------------------------------- entries


@planted("entry_status", "summary_totals", "dangling_delete_file", severity=ROWS)
def a_live_entry_marked_deleted_with_counts_that_agree(table: Table) -> None:
    change_manifest(table, lambda entries: [restated(entries[0], DELETED)], agree=True)


@planted("entry_status", "manifest_counts", "summary_totals", "dangling_delete_file", severity=ROWS)
def a_live_entry_marked_deleted(table: Table) -> None:
    change_manifest(table, lambda entries: [restated(entries[0], DELETED)])


@planted("file_twice", "entry_status", "manifest_counts", "summary_totals", severity=ROWS)
def an_entry_twice(table: Table) -> None:
    change_manifest(table, lambda entries: [entries[0], entries[0]])


@planted("sequence_numbers", "idle_delete_file", severity=ROWS)
def a_file_that_claims_to_be_younger(table: Table) -> None:
    def change(entries: list[ManifestEntry]) -> None:
        entries[0].sequence_number = 99

    change_manifest(table, change)


@planted("dangling_delete_file", severity=NOTHING)
def a_delete_file_that_names_nothing(table: Table) -> None:
    def change(entries: list[ManifestEntry]) -> None:
        path = b"file:///nowhere/x.parquet"
        for name in ("lower_bounds", "upper_bounds"):
            set_file(entries[0].data_file, name, {**getattr(entries[0].data_file, name), 2147483546: path})

    change_manifest(table, change, content=DELETES)


def set_file(file: DataFile, name: str, value: Any) -> None:
    """One field of a data file's entry."""
    names = [field.name for field in DATA_FILE_TYPE[2].fields]
    file[names.index("content" if name == "content" else name)] = value


def entry_set(name: str, value: Any, content: ManifestContent = ManifestContent.DATA) -> Callable[[Table], None]:
    def plant(table: Table) -> None:
        def change(entries: list[ManifestEntry]) -> None:
            file = entries[0].data_file
            set_file(file, name, value(getattr(file, name)) if callable(value) else value)

        change_manifest(table, change, content=content, agree=True)

    return plant


for said, name, value, kinds, severity in (
    ("a record count that is wrong", "record_count", 2, ("record_count", "summary_totals"), ROWS),
    ("a file size that is wrong", "file_size_in_bytes", 7, ("changed_file", "summary_totals"), ROWS),
    ("a null count that is wrong", "null_value_counts", {1: 3, 2: 0}, ("null_counts",), ROWS),
    ("a value count that is wrong", "value_counts", {1: 9, 2: 3}, ("null_counts",), ROWS),
    ("a lower bound that is too high", "lower_bounds", lambda was: {**was, 1: b"\x02" + b"\0" * 7}, ("bounds",), ROWS),
    ("an upper bound that is too low", "upper_bounds", lambda was: {**was, 1: b"\x02" + b"\0" * 7}, ("bounds",), ROWS),
    ("a text bound that is wrong", "upper_bounds", lambda was: {**was, 2: b"a"}, ("bounds",), ROWS),
    (
        "bounds that are too wide",
        "upper_bounds",
        lambda was: {**was, 1: b"\x63" + b"\0" * 7},
        ("wide_bounds",),
        NOTHING,
    ),
    ("Parquet labelled ORC", "file_format", FileFormat.ORC, ("file_format",), ROWS),
    ("a sort order that is not there", "sort_order_id", 44, ("sort_order_ids",), NOTHING),
):
    plant = entry_set(name, value)
    plant.said = said  # type: ignore[attr-defined]
    PLANTINGS.append(Planting(plant, kinds, severity, "deep"))


@planted("partition_values", severity=ROWS, depth="deep", base="partitioned")
def swapped_partition_values(table: Table) -> None:
    def change(entries: list[ManifestEntry]) -> None:
        one, two = entries[0].data_file, entries[1].data_file
        one.partition[0], two.partition[0] = two.partition[0], one.partition[0]

    change_manifest(table, change)


@planted("equality_ids", "summary_totals", severity=ROWS)
def an_equality_delete_of_no_column(table: Table) -> None:
    def change(entries: list[ManifestEntry]) -> None:
        from pyiceberg.manifest import DataFileContent

        set_file(entries[0].data_file, "content", DataFileContent.EQUALITY_DELETES)
        set_file(entries[0].data_file, "equality_ids", [99])
        set_file(entries[0].data_file, "lower_bounds", {})

    change_manifest(table, change, content=DELETES)


# ---------------------------------------------------------------- files


@planted("missing_file", severity=ROWS)
def a_data_file_is_gone(table: Table) -> None:
    path_of(first_file(table)).unlink()


@planted("missing_file", severity=ROWS)
def a_delete_file_is_gone(table: Table) -> None:
    path_of(delete_file(table)).unlink()


@planted("missing_file", severity=MAY, base="overwritten")
def a_file_that_only_an_older_snapshot_needs_is_gone(table: Table) -> None:
    oldest = table.metadata.snapshots[0]
    path_of(oldest.manifests(table.io)[0].fetch_manifest_entry(table.io)[0].data_file.file_path).unlink()


@planted("changed_file", severity=ROWS)
def a_data_file_of_another_size(table: Table) -> None:
    with path_of(first_file(table)).open("ab") as stream:
        stream.write(b"more")


@planted("changed_file", severity=ROWS)
def a_delete_file_of_another_size(table: Table) -> None:
    with path_of(delete_file(table)).open("ab") as stream:
        stream.write(b"more")


@planted("unreferenced_file", severity=NOTHING)
def a_file_that_nothing_names(table: Table) -> None:
    (path_of(first_file(table)).parent / "left-behind.parquet").write_bytes(b"x")


@planted("record_count", "null_counts", "bounds", severity=ROWS, depth="deep")
def a_data_file_replaced_by_one_of_the_same_size(table: Table) -> None:
    def change(rows: pa.Table) -> pa.Table:
        return rows.slice(0, 1).set_column(0, rows.schema.field(0), pa.array([500], pa.int64()))

    rewrite_file(table, change, pad=True)


@planted("unreadable_file", severity=ROWS, depth="deep")
def a_flipped_byte_in_a_footer(table: Table) -> None:
    flip(path_of(first_file(table)), -6)


@planted("unreadable_file", severity=ROWS, depth="deep")
def a_file_of_zeros(table: Table) -> None:
    place = path_of(first_file(table))
    place.write_bytes(b"\0" * place.stat().st_size)


@planted("damaged_page", severity=ROWS, depth="checksums")
def a_flipped_byte_in_a_page(table: Table) -> None:
    """The values of the first column are another's; the footer says what they were."""
    rewrite_file(table, lambda rows: rows, compression="none", use_dictionary=False)
    place = path_of(first_file(table))
    sized(table, place.stat().st_size)
    data = place.read_bytes()
    flip(place, data.index((1).to_bytes(8, "little") + (2).to_bytes(8, "little")) + 1)


@planted("field_ids", severity=ROWS, depth="deep")
def a_field_id_that_was_changed(table: Table) -> None:
    def change(words: Words) -> None:
        words["schemas"][0]["fields"][1]["id"] = 9
        words["last-column-id"] = 9

    change_words(table, change)


@planted("field_ids", severity=ROWS, depth="deep")
def two_field_ids_swapped(table: Table) -> None:
    def change(words: Words) -> None:
        one, two = words["schemas"][0]["fields"]
        one["id"], two["id"] = two["id"], one["id"]

    change_words(table, change)


@planted("column_type", severity=ROWS, depth="deep")
def a_column_of_another_type(table: Table) -> None:
    change_words(table, lambda words: words["schemas"][0]["fields"][1].update({"type": "double"}))


@planted("position_beyond_file", severity=MAY, depth="deep")
def positions_beyond_a_file(table: Table) -> None:
    def change(rows: pa.Table) -> pa.Table:
        at = rows.schema.get_field_index("pos")
        return rows.set_column(at, rows.schema.field(at), pa.array([4_000] * rows.num_rows, pa.int64()))

    path = first_manifest(table, DELETES).fetch_manifest_entry(table.io)[0].data_file.file_path
    rewrite_file(table, change, path=path)
    sized(table, path_of(path).stat().st_size, DELETES)


def sized(table: Table, size: int, content: ManifestContent = ManifestContent.DATA) -> None:
    """The entry says the size of a file that was written over, and nobody says how large all are."""

    def forget(words: Words) -> None:
        for each in words["snapshots"]:
            each["summary"].pop("total-files-size")

    entry_set("file_size_in_bytes", size, content)(table)
    change_words(table, forget)
