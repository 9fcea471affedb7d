"""Files of tables, damaged one at a time, through reading, committing, upkeep and audit.

What is asked of a damaged table gives the right answer, or one sentence. A wrong answer is a fault where the file's own
length, its checksum, or the counts in the list that names it could tell.

python tests/damaged/broken_tables.py SEED FIRST LAST
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from broken_texts import not_a_sentence
from commands import Compact, Insert, RowLevel
from damage import damaged
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, clear_manifest_cache, read_manifest_list
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.typedef import Record
from rows_in_files import BY_P, SCHEMA, Scanned
from version_three_tables import deletion_vector_file, version_three

import lakeproof.iceberg.reading.manifest_cache as cache_module
from lakeproof.audit import audit
from lakeproof.commit import POLICIES, Command, Mode
from lakeproof.errors import LakeproofError
from lakeproof.filters import Compare
from lakeproof.iceberg.committing import pointer
from lakeproof.iceberg.committing.footers import WrittenFile, data_files_from_footers
from lakeproof.iceberg.committing.whole_file_commits import append, delete_where
from lakeproof.iceberg.metadata_tables.metadata_tables import metadata_table
from lakeproof.iceberg.pyiceberg_names import Catalog, Table
from lakeproof.iceberg.reading import delete_files, verifying
from lakeproof.iceberg.reading.aggregates import count_rows
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import create_table, load_table
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files
from lakeproof.iceberg.upkeep.rewrite_manifests import rewrite_manifests
from lakeproof.iceberg.upkeep.table_on_disk import table_at

SLOWEST_S = 10
QUICK = {"commit.retry.total-timeout-ms": "500", "commit.retry.min-wait-ms": "1", "commit.retry.num-retries": "2"}


class Fall(NamedTuple):
    """What was wrong with one answer of a damaged table."""

    number: int
    file: str
    damage: str
    asked: str
    what: str


class TookTooLong(BaseException):
    """An answer took more than ten seconds."""


class Tables:
    """A table of format version 2 in a catalog, one of version 3 in a folder, and how to put them back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri, self.warehouse = f"sqlite:///{folder}/catalog.db", str(folder / "w")
        self.opened: list[Any] = []
        catalog = self.catalog()
        table = create_table(catalog, "t", SCHEMA, partition_by=BY_P, properties=QUICK)
        Insert(1, ((1, 0, 1), (2, 0, 1), (3, 1, 1))).run(catalog, "t")
        Insert(2, ((4, 0, 2), (5, 1, 2), (6, 1, 2))).run(catalog, "t")
        RowLevel(3, Command.DELETE, Mode.MERGE_ON_READ, 2).run(catalog, "t")
        RowLevel(4, Command.UPDATE, Mode.MERGE_ON_READ, 5).run(catalog, "t")
        newest = create_table(catalog, "v3", SCHEMA, properties=QUICK)
        append(newest, write_flat(newest, [(1, 0, 1), (2, 0, 1), (3, 0, 1)]))
        self.three = with_vector(load_table(catalog, "v3"))
        self.two = load_table(catalog, "t")
        assert table.metadata.table_uuid == self.two.metadata.table_uuid
        self.close()
        self.sound = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        live = [*reachable(self.two), *reachable(self.three)]
        self.named = sorted({Path(path.removeprefix("file://")) for path in live})
        self.lengths = dict(said_lengths(self.two)) | dict(said_lengths(self.three))

    def catalog(self) -> Catalog:
        """The catalog, opened anew."""
        self.opened.append(open_catalog(self.uri, self.warehouse))
        return self.opened[-1]  # type: ignore[no-any-return]

    def close(self) -> None:
        """Nobody has the catalog's file open."""
        while self.opened:
            self.opened.pop().engine.dispose()

    def restore(self) -> None:
        """The folder holds what it held."""
        self.close()
        for path in list(self.folder.rglob("*")):
            if path.is_file() and path not in self.sound:
                path.unlink()
        for path, data in self.sound.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)


def write_flat(table: Table, rows: list[tuple[int, int, int]]) -> list[DataFile]:
    """A data file of an unpartitioned table."""
    path = f"{table.location()}/data/flat.parquet"
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    Path(path.removeprefix("file://")).parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_arrays(columns, schema=schema_to_pyarrow(SCHEMA)), path.removeprefix("file://"))
    return data_files_from_footers(table, [WrittenFile(path)])


def with_vector(table: Table) -> Table:
    """The table in format version 3, with a deletion vector of its second row."""
    file = plan(table).files["path"].to_pylist()[0]
    path = Path(table.location().removeprefix("file://")) / "data" / "vector.puffin"
    deletion_vector_file(path, {file: [1]})
    blob = PuffinFile(path.read_bytes()).footer.blobs[0]
    vector = DataFile.from_args(
        _table_format_version=3,
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{path}",
        file_format=FileFormat.PUFFIN,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        referenced_data_file=file,
        content_offset=blob.offset,
        content_size_in_bytes=blob.length,
    )
    vector.spec_id = 0
    return version_three(table, [vector])


def reachable(table: Table) -> Iterator[str]:
    """Every file that the table's head needs."""
    yield table.metadata_location
    head = table.current_snapshot()
    assert head is not None
    yield head.manifest_list
    for manifest in read_manifest_list(table.io.new_input(head.manifest_list)):
        yield manifest.manifest_path
        yield from (entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))


def said_lengths(table: Table) -> Iterator[tuple[Path, int]]:
    """How long each file is, as whoever names it says."""
    head = table.current_snapshot()
    assert head is not None
    for manifest in read_manifest_list(table.io.new_input(head.manifest_list)):
        yield Path(manifest.manifest_path.removeprefix("file://")), manifest.manifest_length
        for entry in manifest.fetch_manifest_entry(table.io):
            file = entry.data_file
            yield Path(file.file_path.removeprefix("file://")), file.file_size_in_bytes


def forget() -> None:
    """Nothing that was read before is known any more."""
    cache_module._shared = ManifestCache(None)
    clear_manifest_cache()
    for recent in (cache_module._manifest_lists, pointer._recent, delete_files._recent_positions, verifying._verified):
        recent.clear()


class Asked(NamedTuple):
    """Something that is asked of a table, and whether every sound table gives the same answer."""

    name: str
    ask: Callable[[Tables, Path], Any]
    compared: bool = False


def _opened(tables: Tables, path: Path) -> Table:
    if "/v3" in str(path):
        return table_at(tables.three.metadata_location)
    return load_table(tables.catalog(), "t")


def _planned(tables: Tables, path: Path) -> Any:
    table = _opened(tables, path)
    found = plan(table)
    counts = found.files.select(["path", "record_count"]).to_pylist()
    gone = {name: at.tolist() for name, at in delete_files.deleted_positions(table, found.delete_files).items()}
    count_rows(table)
    return sorted(map(str, counts)), sorted(gone.items())


def _views(tables: Tables, path: Path) -> None:
    table = _opened(tables, path)
    for name in ("files", "snapshots", "manifests", "partitions", "history", "refs", "position_deletes", "entries"):
        metadata_table(table, name)


def _inserted(tables: Tables, path: Path) -> None:
    Insert(9, ((9, 0, 9),)).run(tables.catalog(), "t")


def _row_level(tables: Tables, path: Path) -> None:
    catalog = tables.catalog()
    with only_of_ours():
        RowLevel(8, Command.DELETE, Mode.MERGE_ON_READ, 4).run(catalog, "t")
        Compact(7, 0).run(catalog, "t")


def _whole(tables: Tables, path: Path) -> None:
    delete_where(_opened(tables, path), Compare("p", "=", 1))


def _upkeep(tables: Tables, path: Path) -> None:
    table = _opened(tables, path)
    rewrite_manifests(table)
    expire_snapshots(table, older_than_ms=2**62, retain_last=1)
    remove_orphan_files(table, older_than_ms=2**62, dry_run=True)


def _audited(tables: Tables, path: Path) -> list[str]:
    return [finding.kind for finding in audit(_opened(tables, path), POLICIES["lakeproof"], name="t").findings]


@contextmanager
def only_of_ours() -> Iterator[None]:
    """What the test's own reader of data files stumbles over is no fault of the product."""
    real = Scanned.__init__

    def scanned(self: Scanned, table: Table, partition: int | None = None) -> None:
        deleted_before = plan(table)
        delete_files.deleted_positions(table, deleted_before.delete_files)
        try:
            real(self, table, partition)
        except LakeproofError:
            raise
        except Exception as error:
            raise LakeproofError(f"the test's reader: {type(error).__name__}") from None

    Scanned.__init__ = scanned  # type: ignore[method-assign]
    try:
        yield
    finally:
        Scanned.__init__ = real  # type: ignore[method-assign]


ALWAYS = (Asked("select", _planned, compared=True), Asked("audit", _audited))
IN_TURN = (
    Asked("metadata tables", _views),
    Asked("insert", _inserted),
    Asked("delete and compact", _row_level),
    Asked("delete of whole files", _whole),
    Asked("upkeep", _upkeep),
)


def right_answers(tables: Tables) -> dict[bool, Any]:
    """What a select of the sound tables gives: of that of version 3, and of the other."""
    right = {}
    for has_vectors, path in {"/v3" in str(path): path for path in tables.named}.items():
        forget()
        right[has_vectors] = _planned(tables, path)
    return right


def mutations(tables: Tables, right: dict[bool, Any], seed: int, first: int, last: int) -> Iterator[Fall]:
    """What falls of these mutations."""
    for number in range(first, last):
        chance = Random(f"{seed} {number}")
        path = chance.choice(tables.named)
        others = [data for name, data in tables.sound.items() if name.suffix == path.suffix and name != path]
        how, data = damaged(tables.sound[path], path.name, chance, others or [b""])
        if data == tables.sound[path]:
            continue
        for asked in (*ALWAYS, IN_TURN[number % len(IN_TURN)]):
            tables.restore()
            path.write_bytes(data)
            forget()
            answer, wrong = answered(asked, tables, path)
            if not wrong and asked.compared and answer is not None and answer != right["/v3" in str(path)]:
                wrong = could_tell(tables, path, data)
            if wrong:
                yield Fall(number, path.name, how, asked.name, wrong)
    tables.restore()


def answered(asked: Asked, tables: Tables, path: Path) -> tuple[Any, str]:
    """The answer (`None`: it was refused in a sentence), and what is wrong with how it was given."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SLOWEST_S)
    try:
        return asked.ask(tables, path), ""
    except LakeproofError as error:
        return None, not_a_sentence(error)
    except TookTooLong:
        return None, f"it took more than {SLOWEST_S} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None, f"raw {type(error).__name__}: {str(error)[:150]}"
    finally:
        signal.alarm(0)


def _too_long(_signal: int, _frame: Any) -> None:
    raise TookTooLong


def could_tell(tables: Tables, path: Path, data: bytes) -> str:
    """Why a reader could have known that the file is not what it was; nothing, if nothing tells."""
    said = tables.lengths.get(path)
    if said is not None and said != len(data) and path.suffix in (".avro", ".puffin"):
        return f"silently another answer: {len(data)} bytes where {said} are said"
    if path.suffix == ".puffin":
        return "silently another answer: a vector has a checksum"
    return ""


@contextmanager
def new_tables() -> Iterator[Tables]:
    """Sound tables in a folder of their own."""
    folder = tempfile.mkdtemp(prefix="lakeproof-damaged-")
    try:
        forget()
        yield Tables(Path(folder))
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
        cache_module._shared = None


def main(arguments: list[str]) -> None:
    """Tell each fall as a line of JSON, and the number that is under way: a crash names its mutation."""
    seed, first, last = map(int, arguments)
    np.seterr(all="ignore")
    with new_tables() as tables:
        right = right_answers(tables)
        for start in range(first, last, 20):
            print(json.dumps({"reached": start}), flush=True)
            for fall in mutations(tables, right, seed, start, min(start + 20, last)):
                print(json.dumps(fall._asdict()), flush=True)
        print(json.dumps({"reached": last}), flush=True)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("iceberg", "simulation")]
    main(sys.argv[1:])
