"""A dbt project as a jobs file: every incremental model is a table and a job that writes it as dbt would.

Only `target/manifest.json` is read. A model's own SELECT becomes a source whose rows are free, as dbt writes it to a
temporary table first; what the model does with it (MERGE, overwrite, append, delete and insert) is dbt's own pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from lakeproof.errors import InvalidInput

PATTERNS = ("append", "merge", "insert_overwrite", "delete+insert", "microbatch")
_DEFAULT = "append"  # of dbt-spark, where a model names no strategy


class DbtModel(NamedTuple):
    """What a manifest says of an incremental model."""

    name: str
    strategy: str
    keys: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]  # name and type
    partitions: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]


def jobs_text(manifest: Mapping[str, Any], *, runs: int = 2, place: str = "") -> str:
    """The jobs file of a manifest: `runs` runs of dbt at once, each of them running every incremental model."""
    models = incremental_models(manifest, place=place)
    if not models:
        raise InvalidInput("The manifest has no incremental model", place=place, hint="other models are built anew")
    lines = [
        "-- Made from a dbt manifest: one table and one job for each incremental model.",
        f"-- times={runs}: so many runs of dbt at once. Columns without a type in the manifest are taken as strings.",
    ]
    if any(model.strategy in ("insert_overwrite", "microbatch") for model in models):
        lines.append("set spark.sql.sources.partitionOverwriteMode = dynamic;")  # as dbt-spark sets it
    lines += [_created(model) for model in models]
    for model in models:
        lines += [f"-- job: {model.name}{f' times={runs}' if runs > 1 else ''}", *_statements(model)]
    return "\n".join(lines) + "\n"


def incremental_models(manifest: Mapping[str, Any], *, place: str = "") -> list[DbtModel]:
    """The incremental models of a manifest, by name."""
    nodes = manifest.get("nodes")
    if not isinstance(nodes, Mapping):
        raise InvalidInput("This is not a dbt manifest: it has no nodes", place=place, hint="use target/manifest.json")
    found = (_incremental(str(name), node, place) for name, node in nodes.items())
    return sorted((model for model in found if model is not None), key=lambda model: model.name)


def _incremental(name: str, node: Any, place: str) -> DbtModel | None:
    """The model of a node; `None`: it is no incremental one. Manifests are dbt's to check: parts are taken as told."""
    try:
        wanted = node.get("resource_type") == "model" and node.get("config", {}).get("materialized") == "incremental"
        return _model(node, place) if wanted else None
    except (AttributeError, TypeError, LookupError, ValueError) as error:
        hint = "make it again with `dbt parse`"
        raise InvalidInput(f"The node {name[:100]!r} is not as dbt writes it", place=place, hint=hint) from error


def _model(node: Mapping[str, Any], place: str) -> DbtModel:
    config = node["config"]
    strategy = config.get("incremental_strategy") or ("merge" if config.get("unique_key") else _DEFAULT)
    name = str(node.get("alias") or node["name"])
    if strategy not in PATTERNS:
        hint = f"known are {', '.join(PATTERNS)}"
        raise InvalidInput(f"The model {name} has the strategy {strategy!r}", place=place, hint=hint)
    keys = tuple(_listed(config.get("unique_key")))
    if strategy in ("merge", "delete+insert") and not keys:
        strategy = "append"  # without a key dbt only inserts
    partitions = tuple(_listed(config.get("partition_by")))
    columns = {str(one["name"]): str(one.get("data_type") or "string") for one in node.get("columns", {}).values()}
    for needed in (*keys, *(_partition_column(one) for one in partitions)):
        if needed.lower() not in {known.lower() for known in columns}:
            columns[needed] = "string"
    if len(columns) <= len(keys):
        columns["value"] = "string"
    given = {**(config.get("tblproperties") or {}), **(config.get("table_properties") or {})}
    properties = tuple((str(key), str(value)) for key, value in given.items())
    return DbtModel(name, strategy, keys, tuple(columns.items()), partitions, properties)


def _listed(value: Any) -> list[str]:
    """One name, several, or dbt's way of saying a partition."""
    if not value:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if "(" not in value else [value]
    if isinstance(value, Mapping):
        return [str(value["field"])]
    return [part for one in value for part in _listed(one)]


def _partition_column(text: str) -> str:
    """The column that a partition such as `days(ts)` or `bucket(4, id)` is of."""
    inside = re.search(r"\(([^)]*)\)", text)
    return (inside[1].split(",")[-1] if inside else text).strip()


def _created(model: DbtModel) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in model.columns)
    by = f" partitioned by ({', '.join(model.partitions)})" if model.partitions else ""
    said = ", ".join(f"'{key}'='{value}'" for key, value in model.properties)
    return f"create table {model.name} ({columns}) using iceberg{by}{f' tblproperties ({said})' if said else ''};"


def _statements(model: DbtModel) -> list[str]:
    source = f"{model.name}__dbt_tmp"
    if model.strategy == "merge":
        on = " and ".join(f"t.{key} = s.{key}" for key in model.keys)
        return [
            f"merge into {model.name} t using {source} s on {on}",
            "  when matched then update set *",
            "  when not matched then insert *;",
        ]
    if model.strategy in ("insert_overwrite", "microbatch"):
        return [f"insert overwrite {model.name} select * from {source};"]
    insert = f"insert into {model.name} select * from {source};"
    if model.strategy == "delete+insert":
        key = model.keys[0]
        return [f"delete from {model.name} where {key} in (select {key} from {source});", insert]
    return [insert]
