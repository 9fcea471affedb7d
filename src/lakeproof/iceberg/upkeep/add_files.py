"""Existing Parquet files are adopted as they are: one snapshot that names them where they lie.

Their columns are found by name (the table gets Iceberg's name mapping), their partition from `column=value` folders,
else from their footers when every row has one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileType
from pyiceberg.conversions import from_bytes, partition_to_py
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    PrimitiveType,
    TimestampType,
    TimestamptzType,
)
from pyiceberg.utils.datetime import date_to_days, datetime_to_micros

from lakeproof.errors import InvalidInput
from lakeproof.filters.decimals import divided, scaled
from lakeproof.iceberg.committing.commit import Committed
from lakeproof.iceberg.committing.footers import FooterReader, WrittenFile, data_files_from_footers
from lakeproof.iceberg.committing.whole_file_commits import DEFAULTS, CommitOptions, append
from lakeproof.iceberg.failures import reading_file, translate_errors
from lakeproof.iceberg.reading.planning import plan
from lakeproof.iceberg.tables.evolution import alter_properties

NAME_MAPPING = "schema.name-mapping.default"
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def add_files(
    table: Table,
    paths: Iterable[str],
    options: CommitOptions = DEFAULTS,
    *,
    time_zone: str = "UTC",
    partitions: Mapping[str, str] | None = None,
    check_duplicates: bool = True,
) -> Committed:
    """One snapshot that adopts the Parquet files at these paths; a folder means every Parquet file below it.

    `time_zone` is the one in which a folder's name tells an instant. `partitions`: only files whose folders say so.
    Files that the table holds already are refused; without `check_duplicates` their rows would be there twice.
    """
    place = f"table {'.'.join(table.name())}"
    with translate_errors(place):
        found = sorted({path for given in paths for path in _files_at(table, given)})
    found = [path for path in found if _lies_in(path, partitions or {})]
    if not found:
        raise InvalidInput("there is no Parquet file to adopt", place=place)
    live = set(plan(table).files["path"].to_pylist()) & set(found) if check_duplicates else set()
    if live:
        raise InvalidInput(f"{len(live)} of the files are in the table already", place=min(live))
    files = _adopted(table, found, time_zone)
    if NAME_MAPPING not in table.properties:
        table = alter_properties(table, {NAME_MAPPING: table.schema().name_mapping.model_dump_json()})
    return append(table, files, options)


def _lies_in(path: str, partitions: Mapping[str, str]) -> bool:
    return all(_folder_value(path, column) == value for column, value in partitions.items())


def _files_at(table: Table, given: str) -> Iterator[str]:
    io = table.io
    if not isinstance(io, PyArrowFileIO):
        raise InvalidInput("the files of this FileIO cannot be listed", place=given)
    scheme, netloc, path = io.parse_location(given, io.properties)
    files = io.fs_by_scheme(scheme, netloc)
    spelled = given if "://" in given else f"file://{path}"
    info = files.get_file_info(path)
    if info.type == FileType.File:
        yield spelled
        return
    if info.type == FileType.NotFound:
        raise InvalidInput("there is no such file or folder", place=given)
    for each in files.get_file_info(FileSelector(path, recursive=True)):
        hidden = any(part.startswith(("_", ".")) for part in each.path[len(path) :].split("/"))
        if each.type == FileType.File and not hidden and each.path.endswith((".parquet", ".parq")):
            yield spelled.rstrip("/") + each.path[len(path) :]


def _adopted(table: Table, paths: Sequence[str], time_zone: str) -> list[DataFile]:
    reader = FooterReader(table.schema(), table.properties)
    written = []
    for path in paths:
        with translate_errors(f"file {path}"), reading_file(path), table.io.new_input(path).open() as stream:
            footer = pq.read_metadata(stream)
        _check_columns(table, path, footer, reader)
        parts = [_value(table, path, footer, reader, field, time_zone) for field in table.spec().fields]
        written.append(WrittenFile(path, tuple(parts)))
    return data_files_from_footers(table, written)


def _check_columns(table: Table, path: str, footer: pq.FileMetaData, reader: FooterReader) -> None:
    known = {footer.schema.column(at).path for at in range(len(footer.schema))}
    unknown = sorted({name.partition(".")[0] for name in known if name not in reader.ids})
    if unknown:
        raise InvalidInput(
            f"the file has columns that the table does not have: {', '.join(unknown)}",
            place=path,
            hint="add the columns to the table first",
        )


def _value(
    table: Table, path: str, footer: pq.FileMetaData, reader: FooterReader, field: PartitionField, time_zone: str
) -> Any:
    """The file's one value of a partition field."""
    source = table.schema().find_field(field.source_id)
    kind = source.field_type
    assert isinstance(kind, PrimitiveType)
    folder = _folder_value(path, source.name if isinstance(field.transform, IdentityTransform) else field.name)
    if folder is not None and isinstance(field.transform, IdentityTransform):
        return None if folder == NULL_FOLDER else _from_text(kind, folder, path, time_zone)
    metrics = reader.metrics(footer)
    low, high = (metrics[key].get(field.source_id) for key in ("lower_bounds", "upper_bounds"))
    nulls, values = (metrics[key].get(field.source_id) for key in ("null_value_counts", "value_counts"))
    if nulls is not None and nulls == values:
        return None
    if low is not None and high is not None and nulls == 0 and not isinstance(field.transform, BucketTransform):
        ends = {field.transform.transform(kind)(from_bytes(kind, end)) for end in (low, high)}
        if len(ends) == 1:
            return ends.pop()
    raise InvalidInput(
        f"the file's value of the partition field `{field.name}` is not known",
        place=path,
        hint=f"every row must have one value, or the file must lie in a folder `{source.name}=…`",
    )


def _folder_value(path: str, column: str) -> str | None:
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if equals and name.lower() == column.lower():
            return unquote(value)
    return None


def _from_text(kind: PrimitiveType, text: str, path: str, time_zone: str) -> Any:
    """The value of a folder's name, as Iceberg stores it."""
    try:
        match kind:
            case DateType():
                return date_to_days(date.fromisoformat(text))
            case TimestampType() | TimestamptzType():
                moment = datetime.fromisoformat(text)
                known = isinstance(kind, TimestampType) or moment.tzinfo is not None
                return datetime_to_micros(moment if known else _in_zone(moment, time_zone))
            case DecimalType():
                value = scaled(divided(Decimal(text), kind.scale)[0], kind.scale)
                if value != Decimal(text):
                    raise ValueError("it has more digits than the type")
                return value
            case FloatType() | DoubleType():
                return float(text.replace("Infinity", "inf"))
        return partition_to_py(kind, text)
    except (ValueError, ArithmeticError, KeyError) as error:  # a time zone that is not known is a KeyError
        raise InvalidInput(f"`{text}` is not a value of type {kind}", place=path, hint=str(error)) from error


def _in_zone(moment: datetime, time_zone: str) -> datetime:
    if time_zone[0] in "+-":
        return datetime.fromisoformat(f"{moment.isoformat()}{time_zone}")
    return moment.replace(tzinfo=ZoneInfo(time_zone))
