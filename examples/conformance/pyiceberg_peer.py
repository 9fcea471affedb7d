"""PyIceberg as a peer of `lakeproof conformance`: each scan stages a transaction, each commit sends it.

    lakeproof conformance tests/scenarios/*.txt --against 'python examples/conformance/pyiceberg_peer.py'

PyIceberg has no SQL, so Lakeproof's own reading of a command says which rows it means; UPDATE and MERGE are done file
by file, as a program with PyIceberg must. No Spark is started.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakeproof.commit.meaning import effect
from lakeproof.errors import LakeproofError
from lakeproof.format import PartitionField as Partition
from lakeproof.format import TableShape
from lakeproof.iceberg.predicates import from_filter
from lakeproof.scenarios.commands import command_of

warnings.simplefilter("ignore")
NUMBER = {"bigint": pa.int64(), "string": pa.large_string()}


class Session:
    """One scenario: a catalog and a table of its own."""

    def __init__(self, request: dict) -> None:
        self.folder = tempfile.TemporaryDirectory()
        at = self.folder.name
        self.catalog = SqlCatalog("peer", uri=f"sqlite:///{at}/c.db", warehouse=f"file://{at}")
        self.catalog.create_namespace("n")
        self.types = [NUMBER[kind] for kind in request["types"]]
        self.schema = pa.schema(list(zip(request["columns"], self.types, strict=True)))
        by = tuple(Partition(column) for column in request["partitioned_by"])
        self.shape = TableShape(tuple(request["columns"]), (by,), request["format_version"])
        level = request["isolation"]
        settings = {f"write.{kind}.isolation-level": level for kind in ("delete", "update", "merge")}
        kinds = {"bigint": LongType(), "string": StringType()}
        fields = zip(request["columns"], request["types"], strict=True)
        schema = Schema(*(NestedField(i, name, kinds[kind]) for i, (name, kind) in enumerate(fields, 1)))
        self.catalog.create_table(
            "n.t", schema, partition_spec=self.spec(request), properties={**settings, "format-version": "2"}
        )
        self.staged = {}
        for rows in request["files"]:
            self.table().append(self.arrow(rows))

    def spec(self, request: dict) -> PartitionSpec:
        """Identity partitions of the named columns."""
        fields = [
            PartitionField(request["columns"].index(name) + 1, 1000 + i, IdentityTransform(), f"{name}_p")
            for i, name in enumerate(request["partitioned_by"])
        ]
        return PartitionSpec(*fields)

    def table(self):
        """The table as it is now."""
        return self.catalog.load_table("n.t")

    def arrow(self, rows) -> pa.Table:
        """Rows as PyIceberg takes them."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.types)
        texts = [
            [str(v) if v is not None and t == pa.large_string() else v for v in c]
            for c, t in zip(columns, self.types, strict=True)
        ]
        return pa.Table.from_arrays(
            [pa.array(c, t) for c, t in zip(texts, self.types, strict=True)], schema=self.schema
        )

    def scan(self, request: dict) -> dict:
        """Stage the command on the table as it is now."""
        command = command_of(request["sql"], self.shape, False, "scan")
        kind, table = str(command.command), self.table()
        staged = self.staged[request["actor"]] = table.transaction()
        if kind == "INSERT":
            staged.append(self.arrow(command.rows))
        elif kind == "DELETE" and not command.exists:
            staged.delete(from_filter(command.where, table.schema()))
        elif kind in ("UPDATE", "MERGE", "REWRITE"):
            self.replace(table, staged, command, rewrites=kind == "REWRITE")
        else:
            return {"skip": f"PyIceberg has no {kind} of this kind"}
        return {}

    def replace(self, table, staged, command, *, rewrites: bool) -> None:
        """File by file: what changes is written anew, the rest of a file with it."""
        tasks = list(table.scan().plan_files())
        read = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        files = [[tuple(row.values()) for row in read.to_table([task]).to_pylist()] for task in tasks]
        done = effect(command, [row for rows in files for row in rows], self.shape.columns)
        changed, start, new = dict(done.changed), 0, list(done.added)
        with staged.update_snapshot().overwrite() as overwrite:
            for task, rows in zip(tasks, files, strict=True):
                numbers = range(start, start + len(rows))
                start += len(rows)
                if rewrites or any(number in changed for number in numbers):
                    overwrite.delete_data_file(task.file)
                    kept = [changed.get(n, row) for n, row in zip(numbers, rows, strict=True)]
                    new += [row for row in kept if row is not None]
            for file in _dataframe_to_data_files(table.metadata, self.arrow(new), table.io) if new else ():
                overwrite.append_data_file(file)

    def commit(self, request: dict) -> dict:
        """Send what was staged."""
        try:
            self.staged.pop(request["actor"]).commit_transaction()
        except (CommitFailedException, ValidationException):
            return {"answer": "conflict"}
        return {"answer": "ok"}

    def rows(self) -> dict:
        """What a reader sees."""
        return {"rows": [list(row.values()) for row in self.table().scan().to_arrow().to_pylist()]}


def answered(session: Session | None, request: dict) -> tuple[Session | None, dict]:
    """The session after a request, and the answer to it."""
    if request["do"] == "begin":
        return Session(request), {}
    if request["do"] == "end" or session is None:
        return None, {}
    if request["do"] == "rows":
        return session, session.rows()
    return session, getattr(session, request["do"])(request)


def main() -> None:
    """Answer each line."""
    session: Session | None = None
    for line in sys.stdin:
        try:
            session, answer = answered(session, json.loads(line))
        except (LakeproofError, NotImplementedError) as error:
            answer = {"skip": str(error).splitlines()[0]}
        except Exception as error:  # whatever the library raises is what the kit should see
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
