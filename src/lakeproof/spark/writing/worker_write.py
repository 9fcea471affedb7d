"""Rows with lists or maps are written by pyarrow inside Spark's workers: Spark's own writer leaves out their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as spark

from lakeproof.iceberg.committing.footers import WrittenFile
from lakeproof.iceberg.failures import translate_errors
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.properties import whole_number
from lakeproof.spark.jvm import spark41
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.writing.transforms import decoded

ROWS_PER_GROUP = 256 * 1024
_RESULT = "path string, partition array<string>"
_Writer = Any


def write_in_workers(rows: DataFrame, names: Sequence[str], folder: str, table: Table) -> list[WrittenFile]:
    """The rows as Parquet files below `folder`, one for each task and partition."""
    return [WrittenFile(path, _partition(texts, table)) for path, texts in worker_paths(rows, names, folder, table)]


def worker_paths(
    rows: DataFrame, names: Sequence[str], folder: str, table: Table
) -> list[tuple[str, Sequence[str | None]]]:
    """What the workers wrote: a path for each task and each set of values of the columns `names`, and those values.

    Only a task that succeeded gives back the names of its files.
    """
    writer = _writer(list(names), folder, table.schema().as_arrow(), arrow_codec(table), arrow_level(table))
    return [(row["path"], row["partition"]) for row in map_in_arrow(rows, writer, _RESULT).collect()]


def arrow_codec(table: Table) -> str:
    """The table's codec as Arrow calls it."""
    codec = table.properties.get("write.parquet.compression-codec", "zstd").lower()
    return "none" if codec == "uncompressed" else codec


def arrow_level(table: Table) -> int | None:
    """The level of zstd that the table asks for; `None`: Arrow's own."""
    level = whole_number(table.properties, "write.parquet.compression-level", 0)
    return level if level and arrow_codec(table) == "zstd" else None


def driver_files(rows: Any, names: Sequence[str], folder: str, table: Table) -> list[WrittenFile]:
    """The rows of an Arrow table as Parquet files below `folder`, one for each partition, written where they are."""
    writer = _writer(list(names), folder, table.schema().as_arrow(), arrow_codec(table), arrow_level(table))
    with translate_errors(f"folder {folder}"):  # what goes wrong in a worker Spark tells, and `jvm/failures` words it
        written = [row for batch in writer(iter(rows.to_batches())) for row in batch.to_pylist()]
    return [WrittenFile(row["path"], _partition(row["partition"], table)) for row in written]


def map_in_arrow(rows: DataFrame, function: Any, result: str) -> DataFrame:
    """`DataFrame.mapInArrow` without its need for pandas."""
    udf = spark41.UserDefinedFunction(
        function, returnType=spark.StructType.fromDDL(result), evalType=spark41.PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    columns = spark41.java_column(udf(*[named_column(name) for name in rows.columns]))
    return DataFrame(spark41.java_frame(rows).mapInArrow(columns, False, None), rows.sparkSession)


def _partition(texts: Sequence[str | None], table: Table) -> tuple[Any, ...]:
    schema = table.schema()
    return tuple(
        None if text is None else decoded_text(text, str(field.transform), schema.find_type(field.source_id))
        for text, field in zip(texts, table.spec().fields, strict=True)
    )


def decoded_text(text: str, transform: str, kind: Any) -> Any:
    """A partition value that never was a folder name, so that nothing in it is escaped."""
    return decoded(text.replace("%", "%25"), transform, kind)


def _writer(names: list[str], folder: str, schema: Any, codec: str, level: int | None) -> Any:
    rows_per_group = ROWS_PER_GROUP
    with_statistics = _statistics(schema)

    # A nested function travels to the workers by value: they need pyarrow, not this package.
    def write(batches: Iterator[Any]) -> Iterator[Any]:
        import uuid
        from urllib.parse import quote

        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.fs as fs
        import pyarrow.parquet as pq

        local = folder.startswith("file:")
        system = fs.LocalFileSystem() if local else fs.FileSystem.from_uri(quote(folder, safe=":/"))[0]
        base = folder.removeprefix("file://") if local else folder.split("://", 1)[1]
        open_files: dict[tuple[str | None, ...], tuple[str, list[Any]]] = {}
        writers: dict[str, Any] = {}

        def flush(name: str, waiting: list[Any], *, last: bool) -> None:
            if waiting:
                rows = pa.concat_tables(waiting).cast(schema)
                if name not in writers:
                    told = with_statistics(rows if last else None)
                    writers[name] = pq.ParquetWriter(
                        f"{base}/{name}",
                        schema,
                        compression=codec,
                        compression_level=level,
                        filesystem=system,
                        write_statistics=told,
                    )
                writers[name].write_table(rows, row_group_size=rows_per_group)
                waiting.clear()

        def file_of(key: tuple[str | None, ...]) -> tuple[str, list[Any]]:
            if key not in open_files:
                if not open_files:
                    system.create_dir(base, recursive=True)
                open_files[key] = (f"{uuid.uuid4()}.parquet", [])
            return open_files[key]

        for batch in batches:
            table = pa.Table.from_batches([batch])
            keys = list(zip(*(table[name].to_pylist() for name in names), strict=True)) or [()] * table.num_rows
            data = table.drop_columns(names) if names else table
            numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
            codes = pa.array([numbers[key] for key in keys], pa.int64())
            for key, number in numbers.items():
                name, waiting = file_of(key)
                waiting.append(data.filter(pc.equal(codes, number)) if len(numbers) > 1 else data)
                if sum(part.num_rows for part in waiting) >= rows_per_group:
                    flush(name, waiting, last=False)
        for name, waiting in open_files.values():
            flush(name, waiting, last=True)
            writers[name].close()
        yield pa.RecordBatch.from_pydict(
            {
                "path": pa.array([f"{folder}/{name}" for name, _ in open_files.values()], pa.string()),
                "partition": pa.array([list(key) for key in open_files], pa.list_(pa.string())),
            }
        )

    return write


def _statistics(schema: Any) -> Any:
    """Which columns of a file get statistics: not those that hold NaN, or may, where not all rows are known yet.

    Arrow leaves NaN out of a column's ends, and Spark, for which NaN is greater than any number, would skip such rows.
    """

    # These too travel to the workers by value.
    def leaves(path: str, kind: Any) -> Iterator[tuple[str, bool]]:
        import pyarrow.types as types

        if types.is_struct(kind):
            for field in kind:
                yield from leaves(f"{path}.{field.name}", field.type)
        elif types.is_map(kind):
            yield from leaves(f"{path}.key_value.key", kind.key_type)
            yield from leaves(f"{path}.key_value.value", kind.item_type)
        elif types.is_list(kind) or types.is_large_list(kind):
            yield from leaves(f"{path}.list.element", kind.value_type)
        else:
            yield path, types.is_floating(kind)

    def holds_nan(array: Any) -> bool:
        import pyarrow.compute as pc
        import pyarrow.types as types

        if types.is_floating(array.type):
            return pc.any(pc.is_nan(array)).as_py() is True
        if types.is_struct(array.type):
            return any(holds_nan(child) for child in array.flatten())
        if types.is_map(array.type):
            return holds_nan(array.keys) or holds_nan(array.items)
        is_list = types.is_list(array.type) or types.is_large_list(array.type)
        return is_list and holds_nan(array.flatten())

    def with_statistics(rows: Any | None) -> list[str]:
        told = []
        for field in schema:
            found = dict(leaves(field.name, field.type))
            nan = any(found.values()) and (rows is None or any(map(holds_nan, rows[field.name].chunks)))
            told += [path for path, floats in found.items() if not (nan and floats)]
        return told

    return with_statistics
