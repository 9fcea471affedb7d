"""The managed table that a stream means: a branch of it, chosen when the stream is made, at its newest each time."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.pyiceberg_names import Table
from lakeproof.iceberg.tables.branches import CommitRef, TableAt, at_ref, ref_of, whole_table
from lakeproof.iceberg.tables.tables import joined_name
from lakeproof.spark.engine import Engine
from lakeproof.spark.statements.names import managed, named_metadata


class StreamTable(NamedTuple):
    """A branch of a table."""

    engine: Engine
    name: str
    ref: CommitRef

    def now(self) -> Table:
        """The branch at the newest metadata."""
        return at_ref(self.engine.load(self.name), self.ref)

    @property
    def place(self) -> str:
        """What errors say."""
        return f"table {self.name}"


def stream_table(engine: Engine, name: str) -> StreamTable | None:
    """The managed table of that name, on the branch that the name or the session says; `None`: it is not ours."""
    found = managed(engine, name)
    if found is None:
        if named_metadata(engine, name) is not None:
            raise InvalidInput("a metadata table is no stream", place=f"table {name}", hint="read it with spark.read")
        return None
    if isinstance(found, TableAt) and found.ref is None:
        hint = "stream from and to the table, or a branch"
        raise InvalidInput(f"{found.label} never changes, and is no stream", place=f"table {name}", hint=hint)
    ref = ref_of(engine.session_table(found))
    if ref.staged:
        hint = "unset spark.wap.id; spark.wap.branch names a branch for all batches"
        raise InvalidInput("a stream cannot stage its batches under one id", place=f"table {name}", hint=hint)
    return StreamTable(engine, joined_name(whole_table(found).name()), ref)


def named_table(engine: Engine, name: str | None) -> StreamTable:
    """The same where `format("iceberg")` says that the table is ours."""
    if not name or "/" in name:
        said = "a stream names a managed table" if not name else "a managed table is named, not its folder"
        raise InvalidInput(said, place=name or "", hint='load("namespace.table"), or toTable("namespace.table")')
    found = stream_table(engine, name)
    if found is None:
        engine.load(name if "." in name else f"{engine.gateway.spark.catalog.currentDatabase()}.{name}")
        raise InvalidInput(f"there is no table `{name}`", hint="create it first")
    return found
