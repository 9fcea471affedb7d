"""A small server that speaks the part of Iceberg's REST catalog protocol that PyIceberg's client uses.

It is the test's own, over PyIceberg's `SqlCatalog` in a SQLite file: requirements are checked and the pointer is
swapped by PyIceberg, not by Lakeproof. It can be killed at any time; what it has answered stands in the file.

python rest_catalog_server.py PORT FILE WAREHOUSE
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

Answer = tuple[int, Any]
CODES: tuple[tuple[type[Exception], int], ...] = (
    (NoSuchTableError, 404),
    (NoSuchNamespaceError, 404),
    (TableAlreadyExistsError, 409),
    (NamespaceAlreadyExistsError, 409),
    (CommitFailedException, 409),
)


class Service:
    """What is asked of the catalog, one change at a time."""

    def __init__(self, file: str, warehouse: str) -> None:
        self.catalog = SqlCatalog("lakeproof", uri=f"sqlite:///{file}", warehouse=warehouse)
        self.changes = threading.Lock()

    def answer(self, method: str, path: str, body: Any) -> Answer:
        """The status and the document of the answer."""
        parts = [unquote(part) for part in path.strip("/").split("/")][1:]  # v1
        match method, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return 200, {"namespaces": [list(name) for name in self.catalog.list_namespaces()]}
            case "POST", ["namespaces"]:
                with self.changes:
                    self.catalog.create_namespace(tuple(body["namespace"]))
                return 200, {"namespace": body["namespace"], "properties": {}}
            case (("GET" | "HEAD"), ["namespaces", namespace]):
                self.catalog.load_namespace_properties(namespace)
                return 200, {"namespace": [namespace], "properties": {}}
            case "GET", ["namespaces", namespace, "tables"]:
                names = [{"namespace": [namespace], "name": name[-1]} for name in self.catalog.list_tables(namespace)]
                return 200, {"identifiers": names}
            case "POST", ["namespaces", namespace, "tables"]:
                return 200, self._created(namespace, body)
            case (("GET" | "HEAD"), ["namespaces", namespace, "tables", name]):
                return 200, _told(self.catalog.load_table((namespace, name)))
            case "POST", ["namespaces", namespace, "tables", name]:
                return 200, self._committed(namespace, name, body)
            case "DELETE", ["namespaces", namespace, "tables", name]:
                with self.changes:
                    self.catalog.drop_table((namespace, name))
                return 204, None
        return 404, _error(NoSuchTableError(f"no such resource: {method} {path}"), 404)

    def _created(self, namespace: str, body: Any) -> Any:
        missing = dict.fromkeys(("location", "partition-spec", "write-order"))
        asked = CreateTableRequest.model_validate({**missing, **body})
        with self.changes:
            made = self.catalog.create_table(
                (namespace, asked.name),
                asked.table_schema,
                location=asked.location,
                partition_spec=asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
                sort_order=asked.write_order or UNSORTED_SORT_ORDER,
                properties=asked.properties,
            )
        return _told(made)

    def _committed(self, namespace: str, name: str, body: Any) -> Any:
        asked = CommitTableRequest.model_validate({"identifier": {"namespace": [namespace], "name": name}, **body})
        with self.changes:
            table = self.catalog.load_table((namespace, name))
            done = self.catalog.commit_table(table, asked.requirements, asked.updates)
        return json.loads(done.model_dump_json(by_alias=True, exclude_none=True))


def _told(table: Table) -> Any:
    metadata = json.loads(table.metadata.model_dump_json(by_alias=True, exclude_none=True))
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _error(error: Exception, code: int) -> Any:
    return {"error": {"message": str(error), "type": type(error).__name__, "code": code}}


def handler(answer: Callable[[str, str, Any], Answer]) -> type[BaseHTTPRequestHandler]:
    """A handler of requests that gives these answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65_536  # head and body leave together

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            try:
                code, document = answer(self.command, urlsplit(self.path).path, body)
            except Exception as error:
                code = next((code for kind, code in CODES if isinstance(error, kind)), 500)
                document = _error(error, code)
            data = b"" if document is None or self.command == "HEAD" else json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_HEAD = do_DELETE = _do

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is printed."""

    return Handler


def main(arguments: list[str]) -> None:
    """Serve until somebody kills this process."""
    port, file, warehouse = arguments
    service = Service(file, warehouse)
    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer(("127.0.0.1", int(port)), handler(service.answer)).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
