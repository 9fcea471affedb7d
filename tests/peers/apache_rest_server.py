"""Apache Iceberg's own REST catalog: its `CatalogHandlers` over its `JdbcCatalog`, with HTTP in front.

It checks requirements, ids and numbers as Apache Iceberg's servers do. A POST to `v1/sql` is no part of the protocol:
Apache Iceberg on Spark runs the statement and answers its rows.

python apache_rest_server.py PORT FILE WAREHOUSE
"""

from __future__ import annotations

import json
import sys
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError

sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))
from rest_catalog_server import Answer, handler

from lakeproof.iceberg.tables.catalogs import CATALOG_NAME
from lakeproof.replay.apache_iceberg import open_session
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.spark.statements.results import json_value

CODES = {
    "NoSuchTableException": 404,
    "NoSuchNamespaceException": 404,
    "AlreadyExistsException": 409,
    "CommitFailedException": 409,
    "BadRequestException": 400,
    "ValidationException": 400,
    "IllegalArgumentException": 400,
}
REST = "org.apache.iceberg.rest"


class Service:
    """What is asked of the catalog."""

    def __init__(self, file: str, warehouse: str) -> None:
        self.session = open_session(Path(file), warehouse)
        self.gateway = Gateway(self.session)
        manager = self.gateway.session.sessionState().catalogManager()
        self.catalog = manager.catalog(CATALOG_NAME).icebergCatalog()
        self.handlers = self.gateway.named(f"{REST}.CatalogHandlers")
        self.mapper = self._mapper()

    def _mapper(self) -> Any:
        """Their JSON; the class that has it is their package's own."""
        method = self._class(f"{REST}.RESTObjectMapper").getDeclaredMethod(
            "mapper", self.gateway.array("java.lang.Class", [])
        )
        method.setAccessible(True)
        return method.invoke(None, self.gateway.array("java.lang.Object", []))

    def _class(self, name: str) -> Any:
        """A class of Apache Iceberg's jar, which Java's own loader does not know."""
        return self.catalog.getClass().getClassLoader().loadClass(name)

    def answer(self, method: str, path: str, body: Any) -> Answer:
        """The status and the document of the answer."""
        try:
            return self._answered(method, [unquote(part) for part in path.strip("/").split("/")][1:], body)
        except Py4JJavaError as error:
            kind, said = error.java_exception.getClass().getSimpleName(), error.java_exception.getMessage()
            code = CODES.get(kind, 500)
            print(method, path, kind, said, file=sys.stderr, flush=True)
            return code, {"error": {"message": said, "type": kind, "code": code}}

    def _answered(self, method: str, parts: list[str], body: Any) -> Answer:
        match method, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "POST", ["sql"]:
                rows = self.session.sql(body["sql"]).collect()
                return 200, {"rows": [[json_value(value) for value in row] for row in rows]}
            case "GET", ["namespaces"]:
                root = self.gateway.named("org.apache.iceberg.catalog.Namespace").empty()
                return 200, self._told(self.handlers.listNamespaces(self.catalog, root))
            case "GET", ["namespaces", namespace, "tables"]:
                return 200, self._told(self.handlers.listTables(self.catalog, self._namespace(namespace)))
            case "POST", ["namespaces"]:
                asked = self._read(body, f"{REST}.requests.CreateNamespaceRequest")
                return 200, self._told(self.handlers.createNamespace(self.catalog, asked))
            case (("GET" | "HEAD"), ["namespaces", namespace]):
                return 200, self._told(self.handlers.loadNamespace(self.catalog, self._namespace(namespace)))
            case "POST", ["namespaces", namespace, "tables"]:
                asked = self._read(body, f"{REST}.requests.CreateTableRequest")
                make = self.handlers.stageTableCreate if asked.stageCreate() else self.handlers.createTable
                return 200, self._told(make(self.catalog, self._namespace(namespace), asked))
            case (("GET" | "HEAD"), ["namespaces", namespace, "tables", name]):
                return 200, self._told(self._loaded(namespace, name))
            case "POST", ["namespaces", namespace, "tables", name]:
                asked = self._read(body, f"{REST}.requests.UpdateTableRequest")
                return 200, self._told(self.handlers.updateTable(self.catalog, self._table(namespace, name), asked))
            case "DELETE", ["namespaces", namespace, "tables", name]:
                self.handlers.dropTable(self.catalog, self._table(namespace, name))
                return 204, None
        return 404, {"error": {"message": f"no such resource: {method} {parts}", "type": "", "code": 404}}

    def _loaded(self, namespace: str, name: str) -> Any:
        whole = self.gateway.named(f"{REST}.RESTCatalogProperties$SnapshotMode").ALL
        return self.handlers.loadTable(self.catalog, self._table(namespace, name), whole)

    def _namespace(self, name: str) -> Any:
        return self.gateway.named("org.apache.iceberg.catalog.Namespace").of(self.gateway.strings([name]))

    def _table(self, namespace: str, name: str) -> Any:
        made: Any = self.gateway.named("org.apache.iceberg.catalog.TableIdentifier")
        return made.of(self._namespace(namespace), name)

    def _read(self, body: Any, kind: str) -> Any:
        return self.mapper.readValue(json.dumps(body), self._class(kind))

    def _told(self, answer: Any) -> Any:
        return json.loads(self.mapper.writeValueAsString(answer))


def main(arguments: list[str]) -> None:
    """Serve until somebody kills this process."""
    port, file, warehouse = arguments
    service = Service(file, warehouse)
    ThreadingHTTPServer(("127.0.0.1", int(port)), handler(service.answer)).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
