"""Lakeproof: run Iceberg tables from PySpark, prove what concurrent jobs can do to them, explain why."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakeproof.checker import Verdict
    from lakeproof.spark.lake import Lake

__version__ = "0.1.0"
__all__ = ["check", "connect"]


def connect(spark: Any = None, catalog: str | None = None, warehouse: str | None = None, **properties: str) -> Lake:
    """The tables of a catalog on a Spark session: the given one, the active one, or a new local one."""
    from lakeproof.spark import lake  # Spark takes its time: only who connects pays for it

    given = {"catalog": catalog, "warehouse": warehouse}
    return lake.connect(spark, **{name: value for name, value in given.items() if value is not None}, **properties)


def check(model: str | PathLike[str], policy: str | None = None, **parameters: object) -> Verdict:
    """Explore every interleaving of a model: `check("iceberg", policy="iceberg-spark", preset="undelete")`."""
    from lakeproof.cli.commands.check import verdict_on, word_of  # the checker is not needed by those who only run SQL

    return verdict_on(model, policy, {name.replace("_", "-"): word_of(value) for name, value in parameters.items()})
