"""Runs inside pypaimon's own environment: does what a request on stdin says to a real table, answers on stdout.

It imports nothing of ours, because pypaimon needs other versions of the libraries that we have.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.index.deletion_vector_meta import DeletionVectorMeta
from pypaimon.index.index_file_meta import IndexFileMeta
from pypaimon.manifest.index_manifest_entry import IndexManifestEntry
from pypaimon.manifest.schema.data_file_meta import DataFileMeta
from pypaimon.manifest.schema.manifest_entry import ManifestEntry
from pypaimon.manifest.schema.simple_stats import SimpleStats
from pypaimon.table.row.generic_row import GenericRow

COLUMNS = ("key", "col2", "col3", "kind")
SCHEMA = pa.schema([pa.field("key", pa.string(), nullable=False), *((name, pa.string()) for name in COLUMNS[1:])])


def new_table(warehouse: str, options: dict[str, str]) -> Any:
    """An empty primary-key table of one bucket in which a column says the row kind."""
    catalog = CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("default", True)
    settings = {"bucket": "1", "rowkind.field": "kind", **options}
    schema = Schema.from_pyarrow_schema(SCHEMA, primary_keys=["key"], options=settings)
    catalog.create_table("default.t", schema, False)
    return catalog.get_table("default.t")


def run_commands(table: Any, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each writer's writes and commits in the order given; after each commit, what a read returns."""
    pending: dict[str, Any] = {}
    answers = []
    for command in commands:
        if command["do"] == "write":
            builder = table.new_batch_write_builder()
            write, commit = builder.new_write(), builder.new_commit()
            write.write_arrow(pa.Table.from_pylist([command["row"]], schema=SCHEMA))
            pending[command["actor"]] = commit, write.prepare_commit()
        else:
            commit, messages = pending.pop(command["actor"])
            commit.commit(messages)
            answers.append(reading(table))
    return answers


def reading(table: Any) -> dict[str, Any]:
    """The rows, and the sequence numbers of the files in the order of their commits."""
    builder = table.new_read_builder()
    splits = builder.new_scan().plan().splits()
    rows = builder.new_read().to_arrow(splits).to_pylist() if splits else []
    sequences = [file.max_sequence_number for split in splits for file in split.files]
    return {"rows": [{name: row[name] for name in COLUMNS[:3]} for row in rows], "sequences": sequences}


def judge(table: Any, case: dict[str, Any]) -> str | None:
    """What pypaimon's own conflict detection says to a change of one bucket; `None`: it may be committed."""
    detection = table.new_batch_write_builder().new_commit().file_store_commit.conflict_detection
    base = [entry(0, file) for file in case["base"]]
    delta = [entry(1, file) for file in case["removed"]] + [entry(0, file) for file in case["added"]]
    ranges = {name: DeletionVectorMeta(name, 0, 1, 1) for name in case["vectors"] or ()}
    index = IndexFileMeta("DELETION_VECTORS", "index-new", 1, len(ranges), ranges)
    indexes = [IndexManifestEntry(0, GenericRow([], []), 0, index)] if case["vectors"] is not None else []
    conflict = detection.check_conflicts(None, base, delta, "COMPACT", indexes)
    return None if conflict is None else str(conflict)


def entry(kind: int, file: dict[str, Any]) -> ManifestEntry:
    """A manifest entry of the only bucket."""
    stats = SimpleStats.empty_stats()
    key = GenericRow([], [])
    meta = DataFileMeta(file["name"], 1, 1, key, key, stats, stats, 0, 0, 0, file["level"], [])
    return ManifestEntry(kind, GenericRow([], []), 0, 1, meta)


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    table = new_table(request["warehouse"], request["options"])
    answers = {
        "readings": run_commands(table, request["commands"]),
        "judged": [judge(table, case) for case in request["cases"]],
    }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
