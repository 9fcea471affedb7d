"""A catalog in a folder, tables in it, and files written as a writer would write them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import schema_to_pyarrow

from lakeproof.iceberg.committing.footers import WrittenFile, data_files_from_footers
from lakeproof.iceberg.committing.values import stored
from lakeproof.iceberg.committing.whole_file_commits import CommitOptions, append
from lakeproof.iceberg.pyiceberg_names import Catalog, DataFile, LongType, NestedField, Schema, StringType, Table
from lakeproof.iceberg.reading.manifest_cache import ManifestCache
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import PartitionBy, create_table, load_table

Row = dict[str, Any]
PEOPLE = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


class Lakehouse:
    """One SQLite catalog and its warehouse."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = f"sqlite:///{folder}/catalog.db"
        self.warehouse = str(folder / "warehouse")
        self.catalog: Catalog = open_catalog(self.uri, self.warehouse)
        self.cache = ManifestCache(None)

    def create(
        self,
        name: str = "t",
        schema: Schema = PEOPLE,
        by: Sequence[PartitionBy] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        return create_table(self.catalog, name, schema, partition_by=by, properties=properties)

    def load(self, name: str = "t") -> Table:
        return load_table(self.catalog, name)

    def as_pyiceberg_opens_it(self, name: str = "t") -> Table:
        """The table through PyIceberg alone, as another program would open it."""
        catalog = load_catalog("lakeproof", type="sql", uri=self.uri, warehouse=f"file://{self.warehouse}")
        return catalog.load_table(("default", name))


def write(table: Table, rows: Iterable[Row], spec_id: int | None = None) -> list[DataFile]:
    """Data files of the rows, one per partition, as Parquet with field ids."""
    spec = table.spec() if spec_id is None else table.specs()[spec_id]
    schema = table.schema()
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        parts.setdefault(partition_of(table, row, spec.spec_id), []).append(row)
    written = []
    for partition, part in parts.items():
        path = f"{table.location()}/data/{uuid.uuid4()}.parquet"
        arrow = pa.Table.from_pylist(part, schema=schema_to_pyarrow(schema))
        with table.io.new_output(path).create() as stream:
            pq.write_table(arrow, stream)
        written.append(WrittenFile(path, partition, spec.spec_id))
    return data_files_from_footers(table, written)


def partition_of(table: Table, row: Row, spec_id: int) -> tuple[Any, ...]:
    values = []
    for field in table.specs()[spec_id].fields:
        source = table.schema().find_field(field.source_id)
        value = row.get(source.name)
        values.append(None if value is None else stored(field.transform.transform(source.field_type)(value)))
    return tuple(values)


def insert(table: Table, rows: Iterable[Row], **options: Any) -> Table:
    return append(table, write(table, rows), CommitOptions(**options)).table


def rows_of(table: Table, snapshot_id: int | None = None) -> list[tuple[Any, ...]]:
    """The rows that PyIceberg reads, sorted."""
    found = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


def people(*numbers: int, name: str = "x") -> list[Row]:
    return [{"id": number, "name": name} for number in numbers]


def files_below(folder: str | Path) -> set[str]:
    root = Path(str(folder).removeprefix("file://"))
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def path_of(file: DataFile | str) -> Path:
    return Path((file if isinstance(file, str) else file.file_path).removeprefix("file://"))
