"""What differs between the versions of Spark that Lakeproof runs on, 4.1 to 4.3: fields, arguments, places.

Everything else that is private stands in `spark41.py` and is the same in all of them. On a version that nobody has
tried `find_unknown` says by name what Spark would ask of Lakeproof in vain, and where arguments were added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyspark

TRIED = ((4, 1), (4, 2), (4, 3))
ALLOWED = "pyspark>=4.1,<4.4"
INSTALLED = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

_CATALOG_TABLE = (
    *("identifier", "tableType", "storage", "schema", "provider", "partitionColumnNames", "bucketSpec", "owner"),
    *("createTime", "lastAccessTime", "createVersion", "properties", "stats", "viewText", "comment", "collation"),
    *("unsupportedFeatures", "tracksPartitionsInCatalog", "schemaPreservesCase", "ignoredProperties"),
    "viewOriginalText",
)
_NEVER_ASKED = {"buildForBatch", "buildForStreaming", "toBatch", "toStreaming", "truncate", "description"}
"""Methods of a write that Spark does not call where rows come as a DataFrame."""
_HIDDEN_IN_CATALOG_TABLE = ("clusterBySpec", "bitmap$0")  # fields of the class that are no arguments


class WantedTable(NamedTuple):
    """How Spark wants a table: with rights to write, of some time, or (neither) to read it as it is."""

    rights: Any = None
    version: str | None = None
    micros: int | None = None


def was_tried(version: tuple[int, ...] = INSTALLED) -> bool:
    """Whether the tests ran on this version of Spark."""
    return version in TRIED


def catalog_table_fields(version: tuple[int, ...] = INSTALLED) -> tuple[str, ...]:
    """The arguments of a `CatalogTable`, in order."""
    return _CATALOG_TABLE if version < (4, 2) else (*_CATALOG_TABLE, "multipartIdentifier")


def v2_columns(helper: Any, schema: Any) -> Any:
    """A schema as columns of the newer interface; from 4.2 on Spark asks whether metadata stays in them."""
    if INSTALLED < (4, 2):
        return helper.structTypeToV2Columns(schema)
    return helper.structTypeToV2Columns(schema, getattr(helper, "structTypeToV2Columns$default$2")())


def function_catalogs(version: tuple[int, ...] = INSTALLED) -> tuple[str | None, ...]:
    """The catalogs under which a function of the session is looked for; from 4.2 on its name must say one."""
    return ("spark_catalog", None) if version < (4, 2) else ("spark_catalog",)


def wanted_table(how: tuple[Any, ...]) -> WantedTable:
    """What the arguments of `loadTable` behind the identifier say.

    Up to 4.2: nothing, rights, a version or a number of microseconds. From 4.3 on: a context with these, and options.
    """
    if len(how) == 2:
        return _from_context(how[0])
    if not how:
        return WantedTable()
    if isinstance(how[0], str):
        return WantedTable(version=how[0])
    return WantedTable(micros=how[0]) if isinstance(how[0], int) else WantedTable(rights=how[0])


def _from_context(context: Any) -> WantedTable:
    rights, travel = context.writePrivileges(), context.timeTravel()
    if rights is not None and len(rights):
        return WantedTable(rights=rights)
    if not travel.isPresent():
        return WantedTable()
    at = travel.get()
    if str(at.getClass().getSimpleName()) == "AsOfVersion":
        return WantedTable(version=at.version())
    return WantedTable(micros=at.micros())


# ---------------------------------------------------------------- versions that nobody has tried


def find_unknown(gateway: Any, answering: Mapping[str, type], arguments: Mapping[tuple[str, str], int]) -> list[str]:
    """What this Spark has more than those that were tried.

    `answering` are the interfaces that Python classes answer for (py4j hands them every call, also of a method that has
    a default); `arguments` are methods with the number of arguments that they are called with.
    """
    found = []
    for interface, kind in answering.items():
        asked = {str(method.getName()) for method in gateway.class_of(interface).getMethods()}
        found += [f"answer to {_short(interface)}.{name}" for name in sorted(asked) if not _answers(kind, name)]
    for (owner, name), count in arguments.items():
        known = {method.getParameterCount() for method in _methods(gateway, owner, name)}
        if count not in known:
            found.append(f"{_short(owner)}.{name} with {count} arguments")
    return found + _changed_fields(gateway)


def _answers(kind: type, name: str) -> bool:
    return "$" in name or name in _NEVER_ASKED or hasattr(kind, name)


def _methods(gateway: Any, owner: str, name: str) -> list[Any]:
    return [method for method in gateway.class_of(owner).getMethods() if method.getName() == name]


def _changed_fields(gateway: Any) -> list[str]:
    """Every field of a `CatalogTable` that is known here and not there, or there and not here."""
    owner = "org.apache.spark.sql.catalyst.catalog.CatalogTable"
    there = {str(field.getName()) for field in gateway.class_of(owner).getDeclaredFields()}
    changed = there.difference(_HIDDEN_IN_CATALOG_TABLE) ^ set(catalog_table_fields())
    return [f"known field CatalogTable.{name}" for name in sorted(changed)]


def _short(name: str) -> str:
    return name.rpartition(".")[2]
