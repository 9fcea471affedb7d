"""New rows and the places of the old ones leave a query together: it runs once, whatever it computes.

Where little is read, or few rows are found, they come to the driver with their places and are written there. Where the
number of places is known to be moderate, Spark writes the rows and tells the places on the way. Else it keeps the rows
until the places are fetched, and then writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeproof.errors import LakeproofError
from lakeproof.iceberg.committing.footers import WrittenFile
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.reading.delete_files import Positions
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.jvm.spark_types import has_collections, to_spark_schema
from lakeproof.spark.reading.columns import named_column
from lakeproof.spark.row_level.row_positions import PLACE
from lakeproof.spark.writing.leftovers import remove_folder, removed_if_failed
from lakeproof.spark.writing.repetition import unrepeated_columns
from lakeproof.spark.writing.spark_write import (
    WrittenFiles,
    native_paths,
    new_folder,
    partition_columns,
    partition_in_path,
    tagged,
    with_partition_columns,
    with_statistics,
    write_rows,
)
from lakeproof.spark.writing.worker_write import driver_files

FATE = "_lakeproof_fate"
"""What becomes of a row: it is written (anew, or for the first time), it is gone, it was read, or merely matched."""
WRITTEN, GONE, READ, MATCHED = FATES = range(4)
SMALL_BYTES = 16 * 1024 * 1024
FEW_ROWS = 250_000  # so many may come to the driver, however much was read for them
MOST_TOLD = 5_000_000  # places that a write tells on its way: they are objects on the driver's heap
MOST_AT_ONCE = 200_000  # places that one call brings from the JVM, as text
_TOLD = "_lakeproof_told"


class Read(NamedTuple):
    """How much a query reads of its target and source: stored bytes, rows, and the target's largest files."""

    bytes: int
    rows: int
    largest: Sequence[str] = ()


class NewRows(NamedTuple):
    """Rows to be written: at hand with their partition as text behind them, kept by Spark, or written already."""

    local: pa.Table | None = None
    kept: DataFrame | None = None
    done: WrittenFiles | None = None

    def release(self) -> None:
        """Spark forgets them."""
        if self.kept is not None:
            self.kept.unpersist()


class TakenRows(NamedTuple):
    """The places of a query's rows by fate, a place as often as there were rows for it, and the rows to write.

    `also` is what the query told besides, if that was asked for: a row of the JVM.
    """

    places: tuple[Positions, ...]
    new: NewRows | None
    also: Any = None

    def discard(self, gateway: Gateway) -> None:
        """Nothing is left of them."""
        if self.new is not None:
            self.new.release()
            if self.new.done is not None:
                remove_folder(gateway, self.new.done.folder)


def take(
    engine: Engine, table: Table, rows: DataFrame, *, read: Read, at_most: int | None = None, also: str = ""
) -> TakenRows:
    """Run a query whose rows are the table's columns, `PLACE` and `FATE`; `at_most`: about so many have a place.

    `also` names what the query tells besides; only one that Spark writes at once can be asked for it.
    """
    ready = with_partitions(rows, table, [PLACE, FATE])
    if read.bytes <= SMALL_BYTES:
        taken = _at_hand(ready.toArrow())
        return taken._replace(also=_observed(ready, also)) if also else taken
    if at_most is None:
        few = ready.limit(FEW_ROWS + 1).toArrow()
        if few.num_rows <= FEW_ROWS:
            return _at_hand(few)
        at_most = read.rows
    if is_told(table, at_most):
        return _written_and_told(engine.gateway, table, rows, unrepeated_columns(table, read.largest), also)
    assert not also
    return _kept(rows)


def is_told(table: Table, at_most: int) -> bool:
    """Whether Spark's own Parquet writer writes new rows of the table and tells so many places on the way."""
    parquet = table.properties.get("write.format.default", "parquet").lower() == "parquet"
    return at_most <= MOST_TOLD and parquet and not has_collections(to_spark_schema(table.schema()))


def _at_hand(found: pa.Table) -> TakenRows:
    new = found.filter(pc.equal(found[FATE], WRITTEN)).drop_columns([PLACE, FATE])
    return TakenRows(_by_fate(found), NewRows(local=new) if new.num_rows else None)


def _kept(rows: DataFrame) -> TakenRows:
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        found = kept.select(PLACE, FATE).toArrow()
    except BaseException:
        kept.unpersist()
        raise
    if pc.any(pc.equal(found[FATE], WRITTEN)).as_py():
        return TakenRows(_by_fate(found), NewRows(kept=kept))
    kept.unpersist()
    return TakenRows(_by_fate(found), None)


def _by_fate(found: pa.Table) -> tuple[Positions, ...]:
    placed = found.filter(pc.is_valid(found[PLACE]))
    places, fates = placed[PLACE].to_numpy(), placed[FATE].to_numpy()
    return tuple(places[fates == fate] for fate in FATES)


def _written_and_told(
    gateway: Gateway, table: Table, rows: DataFrame, unrepeated: frozenset[str], also: str
) -> TakenRows:
    """One job; each task of the last stage tells its places when it succeeds, and never twice."""
    told = [
        *[F.collect_list(F.when(F.col(FATE) == fate, F.col(PLACE))).alias(f"fate_{fate}") for fate in FATES],
        F.count_if(F.col(FATE) == WRITTEN).alias("written"),
    ]
    watched = tagged(rows, table, more=[PLACE, FATE]).observe(_TOLD, *told).filter(F.col(FATE) == WRITTEN)
    own = len(table.schema().fields)
    with_parts = with_partition_columns(watched.drop(PLACE, FATE), table, as_text=False)
    folder = new_folder(table)
    with removed_if_failed(gateway, folder):
        paths = native_paths(gateway, with_parts, with_parts.columns[own:], folder, table, unrepeated=unrepeated)
        files = with_statistics(table, [WrittenFile(path, partition_in_path(path, table)) for path in paths])
        heard = _observed(with_parts, _TOLD)
        count, found = sum(file.record_count for file in files), heard.apply(len(FATES))
        if count != found:  # never seen; if it happens, no place may be believed
            raise LakeproofError(f"{count} rows were written where {found} were found")
    if not files:
        remove_folder(gateway, folder)
    places = tuple(_places(gateway, heard, fate) for fate in FATES)
    new = NewRows(done=WrittenFiles(files, folder)) if files else None
    return TakenRows(places, new, _observed(with_parts, also) if also else None)


def _observed(written: DataFrame, name: str) -> Any:
    """What a query told while it ran, as a row of the JVM; `None`: Spark found that it need not run that part."""
    told = spark41.execution_of(written).observedMetrics().get(name)
    return told.get() if told.isDefined() else None


def _places(gateway: Gateway, row: Any, number: int) -> Positions:
    """The numbers in one column of such a row; a few as they lie in the JVM's memory, many through Arrow."""
    told = row.apply(number)
    count = told.size()
    if count > MOST_AT_ONCE:
        listed = gateway.jvm.java.util.ArrayList()
        listed.add(row)
        frame = DataFrame(gateway.session.createDataFrame(listed, row.schema()), gateway.spark)
        column = frame.select(frame.columns[number]).toArrow().column(0)
        found: Positions = column.combine_chunks().flatten().to_numpy()
        return found
    longs = gateway.once("class of longs", lambda: gateway.jvm.scala.reflect.ClassTag.Long())
    packed = gateway.static("java.nio.ByteBuffer", "allocate")(8 * count)
    packed.asLongBuffer().put(told.toArray(longs))
    return np.frombuffer(packed.array(), ">i8").astype(np.int64)


def with_partitions(rows: DataFrame, table: Table, extra: list[str]) -> DataFrame:
    """The rows as they will be in the files, then the extra columns, then their partition."""
    return tagged(rows, table, more=extra).select("*", *partition_columns(table.spec(), table.schema()))


def write_new(engine: Engine, table: Table, new: NewRows) -> WrittenFiles:
    """The rows as data files."""
    if new.done is not None:
        return new.done
    if new.kept is not None:
        own = [named_column(field.name) for field in to_spark_schema(table.schema()).fields]
        return write_rows(engine.gateway, table, new.kept.filter(F.col(FATE) == WRITTEN).select(*own))
    assert new.local is not None
    folder = new_folder(table)
    names = new.local.column_names[len(table.schema().fields) :]
    try:
        return WrittenFiles(with_statistics(table, driver_files(new.local, names, folder, table)), folder)
    except BaseException:
        remove_folder(engine.gateway, folder)
        raise
