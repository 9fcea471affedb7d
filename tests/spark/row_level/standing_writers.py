"""Writers that stand still, each at a phase of its own statement, until somebody kills their process.

Catalog, warehouse; then on standard input one JSON list of statements and phases. When all stand it says where.
"""

from __future__ import annotations

import json
import sys
import time

from lakeproof.replay.stepping import SteppedWriter
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect


def standing(lake: Lake, statement: str, phase: str) -> SteppedWriter:
    writer = SteppedWriter(lake, lambda watched: watched.sql(statement))
    writer.until([phase])
    return writer


def main() -> None:
    catalog, warehouse = sys.argv[1:]
    conf = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
    session = build_session(warehouse, master="local[1]", quick=True, conf=conf)
    lake = connect(session, catalog=catalog, warehouse=warehouse)
    writers = [standing(lake, statement, phase) for statement, phase in json.loads(sys.stdin.readline())]
    print(json.dumps([writer.at if writer.error is None else repr(writer.error) for writer in writers]), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
