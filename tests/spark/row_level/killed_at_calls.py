"""Writers that stand still, each before a call of its own to the catalog or the storage, until their process is killed.

Catalog, warehouse; then on standard input one JSON list of statements and moments. A moment is a phase of the commit,
or a kind of call and how many of it pass before (`UPDATE 0`, `delete 1`, `call 12`). When all stand it says where.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from pyiceberg.io.pyarrow import PyArrowFileIO
from sqlalchemy import Engine as Database
from sqlalchemy import event

from lakeproof.iceberg.committing.commit import PHASES
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect

FINISHED = "finished"


class Moment:
    """When the writer that runs now shall stand: before the call of this kind that `passing` others precede."""

    def __init__(self, text: str) -> None:
        kind, _, passing = text.rpartition(" ")
        self.text = text
        self.kind, self.passing = (text, 0) if text in PHASES else (kind, int(passing))
        self.reached = threading.Event()
        self.error = ""

    def seen(self, kind: str) -> None:
        """A call is about to be made; the one that is meant is never made."""
        if self.reached.is_set() or (kind != self.kind and (self.kind != "call" or kind in PHASES)):
            return
        if self.passing:
            self.passing -= 1
            return
        self.reached.set()
        time.sleep(3600)


current: list[Moment] = []


def seen(kind: str) -> None:
    for moment in current[-1:]:
        moment.seen(kind)


def watch_calls() -> None:
    """Every statement of the catalog and every call to the storage is seen before it is made."""

    def before(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        seen(statement.split()[0].upper())

    event.listen(Database, "before_cursor_execute", before)
    for name, kind in (("delete", "delete"), ("new_output", "put"), ("new_input", "get")):
        setattr(PyArrowFileIO, name, _watched(getattr(PyArrowFileIO, name), kind))


def _watched(real: Any, kind: str) -> Any:
    def call(self: Any, *told: Any) -> Any:
        seen(kind)
        return real(self, *told)

    return call


def standing(lake: Lake, statement: str, text: str) -> str:
    """Where the writer of this statement stands, or that it finished before."""
    moment = Moment(text)
    current.append(moment)

    def run() -> None:
        try:
            lake.watched(on_phase=seen).sql(statement)
            moment.error = FINISHED
        except BaseException as error:
            moment.error = repr(error)
        moment.reached.set()

    threading.Thread(target=run, daemon=True).start()
    if not moment.reached.wait(300):
        return "lost"
    current.pop()
    return moment.error or text


def main() -> None:
    catalog, warehouse = sys.argv[1:]
    conf = {"spark.sql.shuffle.partitions": "1", "spark.default.parallelism": "1"}
    session = build_session(warehouse, master="local[1]", quick=True, conf=conf)
    lake = connect(session, catalog=catalog, warehouse=warehouse)
    watch_calls()
    print(json.dumps([standing(lake, *told) for told in json.loads(sys.stdin.readline())]), flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
