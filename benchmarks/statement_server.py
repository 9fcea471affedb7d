"""Runs the statements of its standard input, one a line; it imports only what older versions have too."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from lakeproof.spark.lake import connect


def _session_module() -> ModuleType:
    """Where this version, or the one that is measured beside it, makes its sessions."""
    try:
        return import_module("lakeproof.spark.jvm.session")
    except ModuleNotFoundError:
        return import_module("lakeproof.spark.session")


def serve(folder: str) -> None:
    """Run each line of the standard input as a statement."""
    spark = _session_module().build_session(folder, master="local[2]", conf={"spark.sql.shuffle.partitions": "4"})
    lake = connect(spark, catalog=f"sqlite:///{folder}/catalog.db", warehouse=folder)
    for text in sys.stdin:
        try:
            rows = lake.sql(text)
            if rows.columns:
                rows.collect()
            print("ok", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {' '.join(str(error).split())}", flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
