"""What else happens to a table: expiry, orphan removal, tags, ALTER, a rename, DROP, CREATE, and another engine."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

import clockwork
import pyarrow as pa
import pyarrow.parquet as pq
from commands import OP, Command_
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.typedef import Record
from rows_in_files import BY_P, SCHEMA, Row, Rows, removed, write

from lakeproof.errors import CommitRejected, InvalidInput, LakeproofError
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.pointer import stage, swap
from lakeproof.iceberg.committing.produce import FileChange, Producer
from lakeproof.iceberg.pyiceberg_names import DataFile, LongType
from lakeproof.iceberg.reading.manifest_cache import shared_cache
from lakeproof.iceberg.tables import evolution, tables
from lakeproof.iceberg.tables.branches import MAIN
from lakeproof.iceberg.tables.creation import publish, stage_table
from lakeproof.iceberg.tables.refs import create_tag
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.iceberg.upkeep.orphans import remove_orphan_files


@dataclass
class Expire(Command_):
    """All but the newest snapshots go."""

    retain_last: int = 1

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        expire_snapshots(table, older_than_ms=time.time_ns() // 1_000_000 + 1, retain_last=self.retain_last)
        return None


@dataclass
class RemoveOrphans(Command_):
    """Files that nothing names go, if they are older than every command that is still under way."""

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        world = clockwork.running
        assert world is not None
        table = tables.load_table(catalog, name)
        began = [actor.began_ms for actor in world.actors if not actor.done]
        oldest = min([*began, *(request.began_ms for request in world.late)])
        remove_orphan_files(table, older_than_ms=oldest, allow_young=True)
        return None


@dataclass
class Tag(Command_):
    """A tag at some snapshot of the table."""

    oldest: bool = True
    made: bool = False

    @property
    def ref(self) -> str:
        return f"tag-{self.number}"

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        if table.metadata.snapshots:
            snapshots = table.metadata.snapshots
            create_tag(table, self.ref, snapshots[0 if self.oldest else -1].snapshot_id)
            self.made = True
        return None


@dataclass
class SetProperty(Command_):
    """ALTER TABLE: a swap that makes no snapshot."""

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        evolution.alter_properties(tables.load_table(catalog, name), {f"said-{self.number}": "yes"})
        return None


@dataclass
class Create(Command_):
    """CREATE TABLE IF NOT EXISTS."""

    properties: tuple[tuple[str, str], ...] = ()

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        tables.create_table(
            catalog, name, SCHEMA, partition_by=BY_P, properties=dict(self.properties), if_not_exists=True
        )
        return None


class QueryFailed(LakeproofError):
    """The query of a CREATE TABLE … AS SELECT fails after it has given some rows."""


@dataclass
class CreateAs(Command_):
    """CREATE TABLE … AS SELECT, whose query may fail in the middle."""

    rows: tuple[Row, ...]
    fails: bool = False
    on = "default.made"

    def apply(self, rows: Rows) -> Rows:
        return {row[0]: row for row in self.rows}

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        staged = stage_table(catalog, name, SCHEMA, partition_by=BY_P)
        files = write(staged.table, self.rows)
        with removed(staged.table, files):
            if self.fails:
                raise QueryFailed
            table = publish(staged, files, summary=self.told)
        return Committed(table, table.metadata.current_snapshot_id, 0)


@dataclass
class Rename(Command_):
    """The table gets another name, and a new table its old one."""

    to = "default.old"

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        properties = tuple(tables.load_table(catalog, name).properties.items())
        tables.rename_table(catalog, name, self.to)
        kept = tuple((key, value) for key, value in properties if key != tables.CREATED_PROPERTY)
        return Create(self.number, kept).run(catalog, name)


@dataclass
class Drop(Command_):
    """DROP TABLE, with its files or without."""

    purge: bool = False

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        tables.drop_table(catalog, name, if_exists=True, purge=self.purge)
        return None


@dataclass
class EqualityDelete(Command_):
    """Another engine deletes a key by its value, without looking at any file."""

    key: int
    partition: int = 0

    def apply(self, rows: Rows) -> Rows:
        return {key: row for key, row in rows.items() if key != self.key or row[1] != self.partition}

    def run(self, catalog: Catalog, name: str) -> Committed | None:
        table = tables.load_table(catalog, name)
        path = table.location_provider().new_data_location(f"{uuid.uuid4()}-equality.parquet")
        field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
        with table.io.new_output(path).create(overwrite=True) as stream:
            pq.write_table(pa.table([pa.array([self.key])], schema=pa.schema([field])), stream)
        bound = to_bytes(LongType(), self.key)
        file = DataFile.from_args(
            content=DataFileContent.EQUALITY_DELETES,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(self.partition),
            record_count=1,
            file_size_in_bytes=100,
            column_sizes={},
            value_counts={1: 1},
            null_value_counts={1: 0},
            nan_value_counts={},
            lower_bounds={1: bound},
            upper_bounds={1: bound},
            equality_ids=[1],
        )
        file.spec_id = table.spec().spec_id
        for _ in range(20):
            table = tables.load_table(catalog, name)
            head = table.current_snapshot()
            change = FileChange("delete", added_delete_files=(file,), summary={OP: str(self.number)})
            try:
                snapshot = Producer(table, shared_cache()).produce(table, head, change)
                staged = stage(table, snapshot, MAIN, [])
                return Committed(swap(table, staged), snapshot.snapshot_id, 0)
            except CommitRejected:
                continue
            except (FileNotFoundError, InvalidInput) as error:
                if not isinstance(error, FileNotFoundError) and not isinstance(error.__cause__, FileNotFoundError):
                    raise
        raise CommitRejected("the other engine gave up")
