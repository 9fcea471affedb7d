"""Spark asks Python which files a scan reads: a `FileIndex` that answers from Iceberg metadata.

It is given Spark's own filters, and goes into a stock relation: executors run nothing but Spark's native scan.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from lakeproof.iceberg.planning import ScanPlan, plan
from lakeproof.iceberg.predicates import TRUE, BooleanExpression
from lakeproof.iceberg.types import Table
from lakeproof.spark.catalyst import predicate_of
from lakeproof.spark.gateway import CATALYST, SOURCES, Gateway, JavaProxy, from_java, items_of
from lakeproof.spark.paths import for_spark


class Group(NamedTuple):
    """Files that share the values of the hidden columns; `files` are row numbers of the plan."""

    hidden: tuple[bytes | int | None, ...]
    files: Sequence[int]


class ScanSource:
    """One table at one snapshot: plans it once per predicate, from any thread."""

    def __init__(
        self, table: Table, snapshot_id: int | None, columns: Mapping[str, str], key: str, *, at_head: bool
    ) -> None:
        self.table, self.snapshot_id, self.columns = table, snapshot_id, columns
        self.key = key  # what makes two sources the same rows
        self.at_head = at_head  # planned with the current schema, which a snapshot may not have seen yet
        self.last: ScanPlan | None = None
        self._plans: OrderedDict[str, ScanPlan] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        """The table's name."""
        return ".".join(self.table.name())

    def planned(self, predicate: BooleanExpression = TRUE) -> ScanPlan:
        """The files that may hold a matching row."""
        with self._lock:
            found = self._plans.get(str(predicate))
            if found is None:
                found = self._plans[str(predicate)] = self._plan(predicate)
                while len(self._plans) > 16:
                    self._plans.popitem(last=False)
            self.last = found
            return found

    def _plan(self, predicate: BooleanExpression) -> ScanPlan:
        return plan(self.table, predicate, snapshot_id=None if self.at_head else self.snapshot_id, case_sensitive=True)

    def spelled(self, columns: Mapping[str, str]) -> ScanSource:
        """The same source for a relation that spells its columns in another way."""
        return ScanSource(self.table, self.snapshot_id, columns, self.key, at_head=self.at_head)

    def predicate(self, filters: Any) -> BooleanExpression:
        """Spark's filters as a predicate on this table."""
        return self.predicate_of(items_of(filters))

    def predicate_of(self, filters: Iterable[Any]) -> BooleanExpression:
        """The same, of single expressions."""
        return predicate_of(filters, self.columns)


class ManagedFileIndex(JavaProxy):
    """The `FileIndex` of one source."""

    def __init__(
        self, gateway: Gateway, source: ScanSource, hidden_schema: str = "", only: frozenset[str] | None = None
    ) -> None:
        super().__init__(gateway)
        self.source, self.only = source, only
        # With a root path Spark would let INSERT write files beside the metadata; without one it refuses.
        self._no_roots = gateway.sequence(())
        struct = gateway.jvm.org.apache.spark.sql.types.StructType
        self.hidden_schema = struct.fromDDL(hidden_schema) if hidden_schema else gateway.empty_schema
        self._size: int | None = None

    def groups(self, planned: ScanPlan) -> list[Group]:
        """The planned files by the values of the hidden columns."""
        return [Group((), self.kept(planned))]

    def kept(self, planned: ScanPlan) -> Sequence[int]:
        """The planned files that belong to this index, by number; another relation reads the rest."""
        if self.only is None:
            return range(planned.files.num_rows)
        return [number for number, path in enumerate(planned.files["path"].to_pylist()) if path in self.only]

    def statuses(self, planned: ScanPlan, files: Sequence[int]) -> Any:
        """Some of the planned files as Spark lists them."""
        return _statuses(self.gateway, Group((), files), _status_texts(planned.files))

    @from_java
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """The files to read. Hidden columns are never filtered by the user, so `partition_filters` say nothing."""
        planned = self.source.planned(self.source.predicate(data_filters))
        return directories(self.gateway, planned.files, self.groups(planned))

    @from_java
    def rootPaths(self) -> Any:
        """None, on purpose."""
        return self._no_roots

    @from_java
    def inputFiles(self) -> Any:
        """Every file of the snapshot."""
        return self.gateway.strings([for_spark(path) for path in self.source.planned().files["path"].to_pylist()])

    def refresh(self) -> None:
        """A snapshot never changes."""

    @from_java
    def sizeInBytes(self) -> int:
        """The size by which Spark chooses join strategies."""
        if self._size is None:
            self._size = self.source.planned().bytes_kept
        return self._size

    def partitionSchema(self) -> Any:
        """The hidden columns."""
        return self.hidden_schema

    @from_java
    def metadataOpsTimeNs(self) -> Any:
        """Not measured."""
        return self.gateway.none

    def toString(self) -> str:
        """The key: equal keys are equal relations, so that a cached DataFrame is found again."""
        part = "" if self.only is None else f" part {hash(self.only)}"
        return f"lakeproof {self.source.key}{part}"

    class Java:
        """What py4j reads."""

        implements = [f"{SOURCES}FileIndex"]  # noqa: RUF012 - py4j asks for a list


def directories(gateway: Gateway, files: pa.Table, groups: Sequence[Group]) -> Any:
    """The groups as Spark's `Seq[PartitionDirectory]`; many come in one call, which only a bitmap prevents."""
    statuses = _status_texts(files)
    few = len(groups) <= 4
    alone = [group for group in groups if few or any(isinstance(value, bytes) for value in group.hidden)]
    together = [] if few else [g for g in groups if not any(isinstance(value, bytes) for value in g.hidden)]
    found = gateway.jvm.java.util.ArrayList()
    if together:
        text = ",".join(_as_json(group, statuses) for group in together)
        found.addAll(gateway.built(f"[{text}]", gateway.list_of(f"{SOURCES}PartitionDirectory")))
    for group in alone:
        found.add(_directory(gateway, group, statuses))
    return gateway.jvm.PythonUtils.toSeq(found)


def _status_texts(files: pa.Table) -> list[str]:
    return [
        f'{{"path":{json.dumps(for_spark(path))},"length":{size}}}'
        for path, size in zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)
    ]


def _statuses(gateway: Gateway, group: Group, statuses: Sequence[str]) -> Any:
    text = f"[{','.join(statuses[number] for number in group.files)}]"
    return gateway.built(text, gateway.class_of("[Lorg.apache.hadoop.fs.FileStatus;"))


def _directory(gateway: Gateway, group: Group, statuses: Sequence[str]) -> Any:
    files = _statuses(gateway, group, statuses)
    row = gateway.named(f"{CATALYST}expressions.GenericInternalRow")(gateway.array("java.lang.Object", group.hidden))
    return gateway.named(f"{SOURCES}PartitionDirectory").apply(row, files)


def _as_json(group: Group, statuses: Sequence[str]) -> str:
    files = ",".join(f'{{"fileStatus":{statuses[number]},"metadata":{{}}}}' for number in group.files)
    return f'{{"values":{{"values":{json.dumps(group.hidden)}}},"files":[{files}]}}'
