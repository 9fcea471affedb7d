"""A writer that dies by SIGKILL when its statement reaches a phase: catalog, warehouse, statement, phase."""

from __future__ import annotations

import os
import signal
import sys

from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import connect


def main() -> None:
    catalog, warehouse, statement, wanted = sys.argv[1:]
    lake = connect(build_session(warehouse, master="local[1]", quick=True), catalog=catalog, warehouse=warehouse)

    def hook(phase: str) -> None:
        if phase == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    lake.watched(on_phase=hook).sql(statement)


if __name__ == "__main__":
    main()
