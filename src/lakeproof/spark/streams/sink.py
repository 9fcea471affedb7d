"""A managed table as the sink of a stream: each batch is one snapshot, and is there once.

A batch is known by the id of its query, which the checkpoint keeps, and its number; both stand in the snapshot's
summary, in Apache Iceberg's words. Whoever writes a batch looks for it in the branch's history before it writes rows,
and the commit looks again among everything that came since, on every attempt: neither a restart nor a process that was
thought dead can commit it twice.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeproof.errors import CommitUnknown, LakeproofError
from lakeproof.format import StreamBatch
from lakeproof.iceberg.committing.window import branch_has_batch
from lakeproof.spark.engine import AppendRows, Overwrite
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.streams.stream_table import StreamTable


class TableSink:
    """Writes the batches of a query. `complete`: each replaces all rows; `logged`: the last batch that an earlier run
    of the query has begun, which may have been committed already."""

    def __init__(self, table: StreamTable, *, complete: bool, logged: int) -> None:
        self.table, self.complete, self.logged = table, complete, logged

    def write(self, rows: DataFrame, epoch: int) -> None:
        """One batch; called by Spark in the thread of the query."""
        gateway = self.table.engine.gateway
        gateway.callers.note_caller()
        try:
            query_id = str(gateway.context.getLocalProperty(spark41.QUERY_OF_THREAD))
            self._write(rows, StreamBatch(query_id, epoch))
        except LakeproofError as error:
            raise gateway.thrown(error) from None

    def _write(self, rows: DataFrame, batch: StreamBatch) -> None:
        engine, table = self.table.engine, self.table.now()
        found = branch_has_batch(table, batch)
        if found is None and batch.epoch <= self.logged:
            raise CommitUnknown(
                f"nobody can tell whether batch {batch.epoch} of query {batch.query_id} was committed to "
                f"{self.table.name}: the snapshots that could say so were expired\n"
                "  next  look for its rows; keep snapshots for longer than a stream stands still"
            )
        if found:
            rows.write.format("noop").mode("overwrite").save()  # what the query remembers of the batch is made anew
            return
        # A query has a session of its own; the rows come into ours, which knows how such files are written.
        own = engine.gateway.dataframe(spark41.execution_of(rows).analyzed())
        engine.write(table, own, Overwrite() if self.complete else AppendRows(), batch=batch)


def last_logged(gateway: Gateway, checkpoint: str) -> int:
    """The last batch that a checkpoint has begun; -1: none, or there is no checkpoint yet."""
    offsets = gateway.jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
    files = offsets.getFileSystem(gateway.session.sessionState().newHadoopConf())
    found = files.listStatus(offsets) if files.exists(offsets) else []
    names = [str(each.getPath().getName()) for each in found]
    return max((int(name) for name in names if name.isdecimal()), default=-1)
