"""A table of metadata alone: random files whose rows are known, their metrics (some missing), three partition specs."""

from __future__ import annotations

import datetime
import math
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from lakehouse import Lakehouse, partition_of
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from lakeproof.iceberg import predicates as p
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    Schema,
    StringType,
    Table,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from lakeproof.iceberg.tables.evolution import DropPartition, alter_partitions
from lakeproof.iceberg.tables.tables import PartitionBy

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "k", IntegerType()),
    NestedField(3, "price", DoubleType()),
    NestedField(4, "f", FloatType()),
    NestedField(5, "name", StringType()),
    NestedField(6, "cat", StringType()),
    NestedField(7, "ts", TimestampType()),
    NestedField(8, "tsz", TimestamptzType()),
    NestedField(9, "d", DateType()),
    NestedField(10, "flag", BooleanType()),
    NestedField(11, "amount", DecimalType(9, 2)),
    NestedField(12, "big", DecimalType(30, 4)),
    NestedField(13, "uid", UUIDType()),
    NestedField(14, "raw", BinaryType()),
)
SPECS = (
    (PartitionBy("cat"), PartitionBy("ts", "day")),
    (PartitionBy("d"), PartitionBy("name", "truncate[2]"), PartitionBy("id", "bucket[4]")),
    (PartitionBy("flag"), PartitionBy("tsz", "hour"), PartitionBy("k", "truncate[10]"), PartitionBy("amount")),
)
DAY = 86_400_000_000
Row = dict[str, Any]


class Known(NamedTuple):
    """A file's path and the rows that it would hold."""

    path: str
    rows: tuple[Row, ...]


def value(name: str, r: random.Random) -> Any:
    """A value as Iceberg stores it."""
    made: dict[str, Callable[[], Any]] = {
        "id": lambda: r.randrange(-20, 200),
        "k": lambda: r.randrange(-5, 60),
        "price": lambda: r.choice([r.randrange(0, 40) / 4, 0.0, math.nan]),
        "f": lambda: r.choice([float(r.randrange(0, 8)), math.nan]),
        "name": lambda: r.choice(["", "a", "ab", "abc", "abd", "b", "ba", "ñu", "name_" + "x" * r.randrange(20)]),
        "cat": lambda: r.choice(["AIR", "MAIL", "RAIL", "SHIP"]),
        "ts": lambda: 19_700 * DAY + r.randrange(4 * DAY),
        "tsz": lambda: 19_700 * DAY + r.randrange(DAY // 4),
        "d": lambda: 19_700 + r.randrange(6),
        "flag": lambda: r.random() < 0.5,
        "amount": lambda: Decimal(r.randrange(-300, 300)).scaleb(-2),
        "big": lambda: Decimal(r.randrange(-(10**20), 10**20)).scaleb(-4),
        "uid": lambda: uuid.UUID(int=r.getrandbits(128)),
        "raw": lambda: r.randbytes(r.choice([1, 2, 4])),
    }
    return made[name]()


def random_row(r: random.Random, near: Row | None) -> Row:
    """A row; those of one file share what its partition fixes."""
    row: Row = {}
    for field in SCHEMA.fields:
        if near is not None and r.random() < 0.5:
            row[field.name] = near[field.name]
        else:
            row[field.name] = None if not field.required and r.random() < 0.15 else value(field.name, r)
    return row


def random_file(table: Table, r: random.Random, number: int) -> tuple[DataFile, Known]:
    first = random_row(r, None)
    wanted = partition_of(table, first, table.spec().spec_id)
    rows = [first]
    for _ in range(r.randrange(0, 12)):
        row = random_row(r, first)
        if partition_of(table, row, table.spec().spec_id) == wanted:
            rows.append(row)
    path = f"{table.location()}/data/f{number:05}.parquet"
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*wanted),
        record_count=len(rows),
        file_size_in_bytes=r.randrange(1, 10_000),
        **metrics(rows, r),
    )
    file.spec_id = table.spec().spec_id
    return file, Known(path, tuple(rows))


def metrics(rows: list[Row], r: random.Random) -> dict[str, Any]:
    """Exact metrics of the rows, some of them left out, strings cut as writers do."""
    found: dict[str, dict[int, Any]] = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for field in SCHEMA.fields:
        kind: Any = field.field_type
        values = [row[field.name] for row in rows]
        known = [each for each in values if each is not None and each == each]
        if r.random() < 0.1:
            continue
        found["value_counts"][field.field_id] = len(values)
        if r.random() < 0.9:
            found["null_value_counts"][field.field_id] = values.count(None)
        if isinstance(field.field_type, FloatType | DoubleType) and r.random() < 0.8:
            found["nan_value_counts"][field.field_id] = sum(each != each for each in values if each is not None)
        if known and r.random() < 0.9:
            order = (lambda each: each.bytes) if field.name == "uid" else None
            low, high = min(known, key=order), max(known, key=order)
            found["lower_bounds"][field.field_id] = to_bytes(kind, low[:16] if field.name == "name" else low)
            if field.name != "name" or len(high) <= 16:
                found["upper_bounds"][field.field_id] = to_bytes(kind, high)
    return found


def random_table(lake: Lakehouse, seed: int, files: int) -> tuple[Table, list[Known]]:
    r = random.Random(seed)
    table = lake.create("fuzz", SCHEMA, SPECS[0], {"commit.manifest.min-count-to-merge": "3"})
    known: list[Known] = []
    for number, spec in enumerate(SPECS):
        if number:
            old = [DropPartition(each) for each in SPECS[number - 1]]
            table = alter_partitions(alter_partitions(table, old), spec)
        for _ in range(4):
            made = [random_file(table, r, len(known) + at) for at in range(files // 12)]
            known += [each for _, each in made]
            table = append(table, [file for file, _ in made]).table
    return table, known


# ---- predicates, each with the function that says of a row whether it is true, false or unknown

Truth = Callable[[Row], bool | None]
Pair = tuple[Any, Truth]


def literal(name: str, stored: Any) -> Any:
    """A stored value as a predicate spells it."""
    if name in ("ts", "tsz"):
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=stored)
        return moment.isoformat() + ("+00:00" if name == "tsz" else "")
    if name == "d":
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=stored)).isoformat()
    return stored


def ordered(each: Any) -> Any:
    """Values as Spark orders them: NaN is above every number, and equal to itself."""
    if isinstance(each, float):
        return (1, 0.0) if each != each else (0, each)
    return each.bytes if isinstance(each, uuid.UUID) else each


def leaf(r: random.Random) -> Pair:
    name = r.choice(SCHEMA.fields).name
    kind = r.randrange(12)
    if kind == 7:
        if r.random() < 0.5:
            return p.IsNull(name), lambda row: row[name] is None
        return p.NotNull(name), lambda row: row[name] is not None
    if kind == 8:
        number = r.choice(["price", "f"])
        if r.random() < 0.5:
            return p.IsNaN(number), lambda row: None if row[number] is None else row[number] != row[number]
        return p.NotNaN(number), lambda row: None if row[number] is None else row[number] == row[number]
    if kind == 9:
        return _membership(name, r)
    if kind >= 10:
        return _prefix(r.choice(["name", "cat"]), r)
    return _comparison(name, r)


def _number(name: str, r: random.Random) -> Any:
    while True:
        stored = value(name, r)
        if stored == stored:
            return stored


def _comparison(name: str, r: random.Random) -> Pair:
    stored = _number(name, r)
    made, holds = r.choice(
        [
            (p.EqualTo, lambda a, b: a == b),
            (p.NotEqualTo, lambda a, b: a != b),
            (p.LessThan, lambda a, b: a < b),
            (p.LessThanOrEqual, lambda a, b: a <= b),
            (p.GreaterThan, lambda a, b: a > b),
            (p.GreaterThanOrEqual, lambda a, b: a >= b),
        ]
    )
    truth: Truth = lambda row: None if row[name] is None else holds(ordered(row[name]), ordered(stored))  # noqa: E731
    return made(name, literal(name, stored)), truth


def _membership(name: str, r: random.Random) -> Pair:
    stored = [_number(name, r) for _ in range(r.randrange(2, 6))]
    wanted = {ordered(each) for each in stored}
    spelled = [literal(name, each) for each in stored]
    if r.random() < 0.6:
        return p.In(name, spelled), lambda row: None if row[name] is None else ordered(row[name]) in wanted
    return p.NotIn(name, spelled), lambda row: None if row[name] is None else ordered(row[name]) not in wanted


def _prefix(name: str, r: random.Random) -> Pair:
    whole = value(name, r)
    prefix = whole[: r.randrange(0, len(whole) + 1)]
    if r.random() < 0.6:
        return p.StartsWith(name, prefix), lambda row: None if row[name] is None else row[name].startswith(prefix)
    return p.NotStartsWith(name, prefix), lambda row: None if row[name] is None else not row[name].startswith(prefix)


def predicate(r: random.Random, depth: int) -> Pair:
    if depth == 0 or r.random() < 0.3:
        return leaf(r)
    kind = r.randrange(3)
    left, holds = predicate(r, depth - 1)
    if kind == 0:
        return p.Not(left), lambda row: None if (was := holds(row)) is None else not was
    right, too = predicate(r, depth - 1)
    if kind == 1:
        return p.And(left, right), lambda row: _and(holds(row), too(row))
    return p.Or(left, right), lambda row: _or(holds(row), too(row))


def _and(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False
