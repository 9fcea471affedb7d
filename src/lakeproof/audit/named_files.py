"""Files beside the rows that the metadata names: statistics, mappings of moved rows, earlier metadata."""

from __future__ import annotations

from collections.abc import Iterator

from lakeproof.audit.findings import MOST_NAMED, Finding, find
from lakeproof.audit.holdings import Holdings
from lakeproof.audit.kinds import NOTHING
from lakeproof.iceberg.committing.mappings import MAPPING_KEY
from lakeproof.iceberg.upkeep.table_on_disk import sizes_of


def judge_named_files(holdings: Holdings) -> Iterator[Finding]:
    """Which of them are not there; no row is lost with them."""
    words = holdings.words
    logged = [str(each["metadata-file"]) for each in words.get("metadata-log") or []]
    if gone := _gone(holdings, logged):
        yield find("metadata_log", f"{len(gone)} earlier metadata files are not there", files=gone)
    described = [*(words.get("statistics") or []), *(words.get("partition-statistics") or [])]
    if gone := _gone(holdings, [str(each["statistics-path"]) for each in described]):
        yield find("statistics", f"{len(gone)} files of statistics are not there", files=gone[:MOST_NAMED])
    for each in holdings.snapshots:
        mapping = (each.get("summary") or {}).get(MAPPING_KEY)
        if mapping and _gone(holdings, [mapping]):
            text = f"{mapping} is not there: commands that read before this compaction will run again"
            number = int(each["snapshot-id"])
            yield find("missing_file", text, snapshots=[number], files=[mapping], severity=NOTHING)


def _gone(holdings: Holdings, paths: list[str]) -> list[str]:
    sizes = sizes_of(holdings.io, paths)
    return [path for path, size in zip(paths, sizes, strict=True) if size is None]
