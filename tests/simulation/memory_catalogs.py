"""Two catalogs in memory: an SQL database, one row per table, and a server that checks requirements and swaps itself.

Their requests fail, lose their answers, and arrive late, as `clockwork` says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import clockwork
import requests
from memory_store import MemoryIO, files
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import StaticPool

from lakeproof.iceberg.format_v3.metadata import write_metadata
from lakeproof.iceberg.pyiceberg_private import KeepingSqlCatalog

Pointers = dict[str, str]
IO = "memory_store.MemoryIO"


def step(kind: str, label: str) -> str:
    return clockwork.NO_FAULT if clockwork.running is None else clockwork.running.step(kind, label)


def unanswered(fault: str, arrive: Callable[[], None]) -> None:
    """What becomes of a request whose sender will not hear of it."""
    world = clockwork.running
    assert world is not None
    assert world.turn is not None
    world.turn.unanswered += 1
    if fault in ("late", "crash late"):
        world.send_late(arrive)
    elif fault in ("lost", "crash after"):
        world.quiet += 1
        try:
            arrive()
        finally:
            world.quiet -= 1
    if fault.startswith("crash"):
        world.die()


class _Shared(sqlite3.Connection):
    """One connection for all: an actor that dies with a transaction open takes that with it, not the database."""

    def close(self) -> None:
        self.rollback()


class Database:
    """A SQL catalog over one SQLite database in memory, which all actors share."""

    def __init__(self) -> None:
        self.raw = sqlite3.connect(":memory:", check_same_thread=False, factory=_Shared)
        engine = create_engine("sqlite://", creator=lambda: self.raw, poolclass=StaticPool)
        self.catalog = KeepingSqlCatalog("lakeproof", uri="sqlite://", **{"py-io-impl": IO})
        self.catalog.engine.dispose()
        self.catalog.engine = engine
        self.catalog.create_tables()
        event.listen(engine, "before_cursor_execute", self._before)

    def opened(self, warehouse: str) -> Catalog:
        """The catalog, empty."""
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            self.raw.execute(f"delete from {table}")
        self.raw.commit()
        self.catalog.properties["warehouse"] = warehouse
        self.catalog.create_namespace("default")
        return self.catalog

    def pointers(self) -> Pointers:
        """The metadata file of each table."""
        rows = self.raw.execute("select table_namespace, table_name, metadata_location from iceberg_tables")
        return {f"{namespace}.{name}": location for namespace, name, location in rows.fetchall()}

    def _before(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        verb = statement.lstrip()[:6].upper()
        if verb == "SELECT":
            if step("read", "pointer"):
                raise OperationalError(statement, parameters, ConnectionError("the database does not answer"))
            return
        fault = step("swap", verb)
        if not fault:
            return
        if fault == "busy":
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise OperationalError(statement, parameters, busy)
        if fault == "late" and (verb == "DELETE" or "SET table_namespace" in statement):
            fault = "lost"  # a DROP or a rename by name that arrives a day later may hit any table: no client can help

        def arrive() -> None:
            with suppress(sqlite3.IntegrityError):  # the name is taken: its sender would hear so
                self.raw.execute(statement, parameters)
            self.raw.commit()

        unanswered(fault, arrive)
        raise OperationalError(statement, parameters, ConnectionError("the connection was closed"))


class Server(NoopCatalog):
    """A catalog as a REST server is one: it is told requirements and updates, and swaps its own pointer."""

    def __init__(self, warehouse: str) -> None:
        super().__init__("lakeproof", **{"py-io-impl": IO, "warehouse": warehouse})
        self.locations: Pointers = {}

    def pointers(self) -> Pointers:
        """The metadata file of each table."""
        return dict(self.locations)

    def _name(self, identifier: str | Identifier) -> str:
        return identifier if isinstance(identifier, str) else ".".join(identifier)

    def _read(self, label: str) -> None:
        if step("read", label):
            raise requests.exceptions.ConnectionError("the server does not answer")

    def _asked(self, label: str, apply: Callable[[], Any]) -> Any:
        """One request: applied, or lost on its way there or back."""
        world = clockwork.running
        fault = step("swap", label)
        if fault == "busy":
            unanswered(fault, lambda: None)
            raise CommitStateUnknownException("503")  # it was not applied, but who could know
        if fault:

            def arrive() -> None:
                try:
                    apply()
                except Exception as error:  # its sender does not hear this
                    assert world is not None
                    world.log.append(f"it is refused: {error}")

            unanswered("lost" if fault == "late" and label in ("drop", "rename") else fault, arrive)
            raise requests.exceptions.ConnectionError("the server does not answer")
        if world is not None:
            world.quiet += 1
        try:
            return apply()
        finally:
            if world is not None:
                world.quiet -= 1

    def _table(self, name: str) -> Table:
        location = self.locations.get(name)
        if location is None:
            raise NoSuchTableError(f"Table does not exist: {name}")
        io = MemoryIO(self.properties)
        metadata = FromInputFile.table_metadata(io.new_input(location))
        return Table(tuple(name.split(".")), metadata, location, io, self)

    def load_table(self, identifier: str | Identifier) -> Table:
        self._read("load")
        world = clockwork.running
        if world is None:
            return self._table(self._name(identifier))
        world.quiet += 1
        try:
            return self._table(self._name(identifier))
        finally:
            world.quiet -= 1

    def table_exists(self, identifier: str | Identifier) -> bool:
        self._read("exists")
        return self._name(identifier) in self.locations

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        return True

    def create_namespace_if_not_exists(self, namespace: str | Identifier, properties: Properties = EMPTY_DICT) -> None:
        pass

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        self._read("list")
        return [tuple(name.split(".")) for name in self.locations]

    def _stored(self, name: str, metadata: TableMetadata, version: int) -> str:
        provider = load_location_provider(metadata.location, metadata.properties)
        location = provider.new_table_metadata_file_location(version)
        write_metadata(metadata, MemoryIO(self.properties).new_output(location))
        self.locations[name] = location
        return location

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        name = self._name(identifier)

        def apply() -> Table:
            if name in self.locations:
                raise TableAlreadyExistsError(f"Table {name} already exists")
            place = location or f"{self.properties['warehouse']}/{name.replace('.', '/')}"
            self._stored(name, new_table_metadata(schema, partition_spec, sort_order, place, properties), 0)
            return self._table(name)

        return self._asked("create", apply)  # type: ignore[no-any-return]

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Any,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        self._read("stage")
        name = self._name(identifier)
        place = location or f"{self.properties['warehouse']}/{name.replace('.', '/')}"
        metadata = new_table_metadata(schema, partition_spec, sort_order, place, properties)
        return CreateTableTransaction(
            StagedTable(tuple(name.split(".")), metadata, "", MemoryIO(self.properties), self)
        )

    def drop_table(self, identifier: str | Identifier) -> None:
        name = self._name(identifier)

        def apply() -> None:
            if self.locations.pop(name, None) is None:
                raise NoSuchTableError(f"Table does not exist: {name}")

        self._asked("drop", apply)

    def purge_table(self, identifier: str | Identifier) -> None:
        self.drop_table(identifier)  # a server removes the files itself, in its own time

    def rename_table(self, from_identifier: str | Identifier, to_identifier: str | Identifier) -> Table:
        old, new = self._name(from_identifier), self._name(to_identifier)

        def apply() -> Table:
            if old not in self.locations:
                raise NoSuchTableError(f"Table does not exist: {old}")
            if new in self.locations:
                raise TableAlreadyExistsError(f"Table {new} already exists")
            self.locations[new] = self.locations.pop(old)
            return self._table(new)

        return self._asked("rename", apply)  # type: ignore[no-any-return]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        name = ".".join(table.name())

        def apply() -> CommitTableResponse:
            now = self._table(name) if name in self.locations else None
            for requirement in requirements:
                requirement.validate(None if now is None else now.metadata)
            if now is None:
                base, location, version = self._empty_table_metadata(), None, -1
            else:
                base, location = now.metadata, now.metadata_location
                version = int(location.rpartition("/")[2].partition("-")[0])
            new = update_table_metadata(base, updates, enforce_validation=now is None, metadata_location=location)
            return CommitTableResponse(metadata=new, metadata_location=self._stored(name, new, version + 1))  # type: ignore[call-arg]

        return self._asked("commit", apply)  # type: ignore[no-any-return]

    @staticmethod
    def _empty_table_metadata() -> TableMetadata:
        return KeepingSqlCatalog._empty_table_metadata()


def metadata_at(location: str) -> TableMetadata | None:
    """What a metadata file says; `None`: there is no such file."""
    if location not in files:
        return None
    return FromInputFile.table_metadata(MemoryIO().new_input(location))
