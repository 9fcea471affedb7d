"""What the names of managed tables mean while Spark analyses one statement: whose tables, and as they were when.

Spark's analyzer asks the session's catalog by name, in the thread that runs the statement, and there is no argument in
which a statement could hand something along. So what is in force is bound to that thread of the JVM, for as long as the
analysis takes, and only `catalog.py` asks for it. Nothing about writing stands here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.spark.engine import Engine
from lakeproof.spark.jvm.gateway import Gateway

_PROPERTY = "lakeproof.names"
_in_force: dict[str, Names] = {}


class Names(NamedTuple):
    """The lake that names mean, tables that are read as they were loaded, and the instant at which all are read.

    A query that names metadata columns has its tables noted in `noted`, by what each prints.
    """

    engine: Engine
    pinned: Mapping[str, Table]
    as_of_ms: int | None
    noted: dict[str, Any] | None = None


@contextmanager
def names_mean(
    engine: Engine,
    pinned: Mapping[str, Table] | None = None,
    as_of_ms: int | None = None,
    noted: dict[str, Any] | None = None,
) -> Iterator[None]:
    """What this thread has analysed inside reads the tables of `engine`, those that are pinned as they are given."""
    context, key = engine.gateway.context, uuid.uuid4().hex
    outer = context.getLocalProperty(_PROPERTY) if _in_force else None
    _in_force[key] = Names(engine, pinned or {}, as_of_ms, noted)
    context.setLocalProperty(_PROPERTY, key)
    try:
        yield
    finally:
        context.setLocalProperty(_PROPERTY, outer)
        del _in_force[key]


def names_in_force(gateway: Gateway) -> Names | None:
    """What names mean to the thread of the JVM that asks; `None`: the tables of the lake that is connected, now."""
    return _in_force.get(gateway.context.getLocalProperty(_PROPERTY) or "") if _in_force else None
