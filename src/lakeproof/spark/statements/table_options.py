"""What CREATE TABLE says beside columns: whether the table is managed, its properties and its partition fields."""

from __future__ import annotations

from typing import Any

from lakeproof.iceberg.tables.tables import PartitionBy
from lakeproof.spark.engine import Engine

MANAGED = "addtablemanagement"
DEPENDENCIES = "columndependencies"
TABLE_OPTIONS = ("path", MANAGED, DEPENDENCIES)


def is_managed(provider: str, options: dict[str, str]) -> bool:
    """Whether CREATE TABLE asks for a managed table."""
    known = lowered(options)
    return provider.lower() == "iceberg" or known.get(MANAGED, known.get(f"option.{MANAGED}", "")).lower() == "true"


def default_provider(engine: Engine) -> str:
    """What a table is made of that names no provider: `iceberg` where the session says so."""
    chosen = str(engine.gateway.spark.conf.get("spark.sql.sources.default", "parquet"))
    return chosen if chosen.lower() == "iceberg" else ""


def lowered(options: dict[str, str]) -> dict[str, str]:
    """Options by their names in lower case, as Spark compares them."""
    return {name.lower().removeprefix("option."): value for name, value in options.items()}


def table_properties(properties: dict[str, str]) -> dict[str, str]:
    """What stays with the table of what CREATE TABLE said."""
    told = {"provider", "location", "path", "external", "is_managed_location", "table_type", MANAGED, DEPENDENCIES}
    told |= {"current-snapshot-id", "format", "sort-order", "identifier-fields"}  # which SHOW CREATE TABLE tells
    return {
        name: value
        for name, value in properties.items()
        if not name.lower().startswith("option.") and name.lower() not in told
    }


def partition_by(transform: Any) -> PartitionBy:
    """A transform of Spark's connector interface as a partition field."""
    column = ".".join(transform.references()[0].fieldNames())
    name = transform.name()
    if name in ("bucket", "truncate"):
        literals = [one for one in transform.arguments() if one.getClass().getSimpleName() == "LiteralValue"]
        return PartitionBy(column, f"{name}[{literals[0].value()}]")
    return PartitionBy(column, name.removesuffix("s") if name != "identity" else name)
