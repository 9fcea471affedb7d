"""A process that streams from table to table until it is killed: catalog, warehouse, source, sink, checkpoint, phase.

With a phase it stands still when a batch reaches it, in each of the given checkpoints' queries, and says so.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from pyspark.sql.streaming import StreamingQuery

from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect


def start(lake: Lake, source: str, sink: str, checkpoint: str) -> StreamingQuery:
    """One file a batch, as fast as it goes."""
    rows = lake.spark.readStream.option("streaming-max-files-per-micro-batch", "1").table(source)
    return rows.writeStream.toTable(sink, checkpointLocation=checkpoint)


def stand(lake: Lake, at: str, source: str, sink: str, checkpoint: str) -> threading.Event:
    """A query whose second batch stands still at a phase."""
    reached, seen = threading.Event(), [0]

    def hook(phase: str) -> None:
        seen[0] += phase == at
        if phase == at and seen[0] == 2:
            reached.set()
            time.sleep(600)

    lake.watched(on_phase=hook).reconnect()
    start(lake, source, sink, checkpoint)
    return reached


def main() -> None:
    catalog, warehouse = sys.argv[1:3]
    conf = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
    lake = connect(build_session(warehouse, master="local[2]", quick=True, conf=conf), catalog, warehouse)
    told = json.loads(sys.stdin.readline())
    if "standing" in told:
        stood = [stand(lake, *each) for each in told["standing"]]
        print(json.dumps([each.wait(120) for each in stood]), flush=True)
        time.sleep(600)
    print("streaming", flush=True)
    start(lake, *told["running"]).awaitTermination()


if __name__ == "__main__":
    main()
