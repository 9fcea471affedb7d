"""The same rows for every side: one file per task and one partition per file, so that all sides have the same files."""

from __future__ import annotations

from typing import Any

from benchmarks.session import ICEBERG, OURS, PLAIN, Sides

PARTITIONS = 6
CODEC = "zstd"  # of every side
COLUMNS = "id bigint, customer int, item int, quantity int, price double, note string, month int"
MERGE_ON_READ = ", ".join(f"'write.{command}.mode'='merge-on-read'" for command in ("delete", "update", "merge"))


def rows(sides: Sides, count: int, files: int) -> Any:
    """`count` rows in `files` parts; ids follow each other, and a sixth of them is a month."""
    made = sides.spark.range(0, count, 1, files)
    return made.selectExpr(
        "id",
        "cast(hash(id) % 100000 as int) customer",
        "cast(id % 1000 as int) item",
        "cast(id % 7 as int) quantity",
        "cast(abs(hash(id, 1)) % 100000 as double) / 100 price",
        "substring(sha2(cast(id as string), 256), 1, 12) note",
        f"cast(id * {PARTITIONS} div {count} as int) month",
    )


def create(sides: Sides, name: str, *, properties: str = MERGE_ON_READ, partitioned: bool = True) -> None:
    """The empty table `name` of ours and, where it is there, of Apache Iceberg."""
    by = "partitioned by (month)" if partitioned else ""
    same = f"'write.distribution-mode'='none', 'write.parquet.compression-codec'='{CODEC}'"
    made = f"({COLUMNS}) using iceberg {by} tblproperties ({properties}, {same})"
    sides.lake.sql(f"create table {name} {made}")
    if sides.peer:
        sides.sql(f"create table peer.d.{name} {made}")


def fill(sides: Sides, name: str, count: int, files: int, *, plain: bool = False) -> None:
    """The rows into every side."""
    create(sides, name)
    made = rows(sides, count, files)
    sides.lake.table(name).append(made)
    if sides.peer:
        made.writeTo(f"peer.d.{name}").append()
    if plain:
        made.write.partitionBy("month").parquet(plain_path(sides, name), compression=CODEC)


def plain_path(sides: Sides, name: str) -> str:
    """Where the plain Parquet files are."""
    return str(sides.folder / "plain" / name)


def named(side: str, name: str) -> str:
    """The table as the side spells it in SQL; plain files are a view."""
    return {OURS: name, ICEBERG: f"peer.d.{name}", PLAIN: f"plain_{name}"}[side]
