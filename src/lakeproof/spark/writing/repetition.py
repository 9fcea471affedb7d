"""Which columns of Parquet files hold values that hardly repeat, as the footers of files that are there already say.

A writer starts every column with a dictionary. Where the values of the first page do not repeat it throws it
away and writes them again as they are, which costs a fifth of the whole write. Whoever writes the same rows again
can leave that out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakeproof.errors import LakeproofError
from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.pyiceberg_names import ManifestContent, Table
from lakeproof.iceberg.reading.lru import Recent
from lakeproof.iceberg.reading.manifest_cache import manifests_of, shared_cache
from lakeproof.iceberg.reading.planning import ScanPlan
from lakeproof.iceberg.reading.segments import rows_of_spans

SAMPLED = 3  # files; the footer of each is a request where files are far away
LEAST_ROWS = 20_000  # of a row group that tells anything: Parquet's writer decides after so many
MOST_GAIN = 7  # a plain chunk that compresses better than this repeats: 6.6 for numbers in a row, 7.5 for 200 texts
_COMPRESSED = ("ZSTD", "GZIP")
_known: Recent[frozenset[str]] = Recent(4096)


def largest_files(planned: ScanPlan) -> list[str]:
    """The paths of the few largest files of a scan, which tell most about its rows."""
    paths = planned.files["path"].take(pc.top_k_unstable(planned.files["size"], k=SAMPLED))
    return [str(path) for path in paths.to_pylist()]


def newest_files(table: Table) -> list[str]:
    """The few largest files that the newest manifest of the head names: what an INSERT adds is likely like them."""
    try:
        manifests = manifests_of(table.io, table.current_snapshot())
        data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
        newest = max(data, key=lambda manifest: manifest.sequence_number or 0, default=None)
        found = [] if newest is None else shared_cache().load(table.io, [newest])
    except (LakeproofError, OSError, ValueError):  # whoever needs the manifest says what is wrong with it
        return []
    paths: list[str] = []
    for segment, spans in found:
        rows = np.flatnonzero(segment.live & rows_of_spans(segment, spans))
        largest = rows[np.argsort(segment.numpy("size")[rows])[-SAMPLED:]]
        paths += segment.column("path").take(pa.array(largest)).to_pylist()
    return paths


def unrepeated_columns(table: Table, paths: Sequence[str]) -> frozenset[str]:
    """The columns, by their paths in the schema, that none of these few files has a dictionary of.

    A hint and no more: a file that cannot be read says nothing here, and names itself where its rows are read.
    """
    told = [_known.get(path, partial(_told, table, path)) for path in paths]
    return frozenset.intersection(*told) if told else frozenset()


def _told(table: Table, path: str) -> frozenset[str]:
    try:
        with translate_errors(f"file {path}"), reading_file(path), table.io.new_input(path).open() as stream:
            return columns_without_dictionary(pq.read_metadata(stream))
    except LakeproofError:
        return frozenset()


def columns_without_dictionary(footer: pq.FileMetaData) -> frozenset[str]:
    """The columns of which every large row group is written plainly, and is none the larger for it."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    large = [group for group in groups if group.num_rows >= LEAST_ROWS]
    return frozenset.intersection(*(frozenset(_plain(group)) for group in large)) if large else frozenset()


def _plain(group: pq.RowGroupMetaData) -> Iterable[str]:
    for number in range(group.num_columns):
        chunk = group.column(number)
        gained = chunk.total_uncompressed_size > MOST_GAIN * chunk.total_compressed_size
        if chunk.compression in _COMPRESSED and not chunk.has_dictionary_page and not gained:
            yield chunk.path_in_schema
