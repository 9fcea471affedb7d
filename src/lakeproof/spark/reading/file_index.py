"""Spark asks Python which files a scan reads: a `FileIndex` that answers from Iceberg metadata.

It is given Spark's own filters, and goes into a stock relation: executors run nothing but Spark's native scan.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lakeproof.filters import ALWAYS, Expression
from lakeproof.iceberg.predicates import from_filter
from lakeproof.iceberg.pyiceberg_names import Schema, Table
from lakeproof.iceberg.reading.planning import ScanPlan, plan
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway, JavaProxy, from_java
from lakeproof.spark.jvm.paths import SCHEMES, for_spark
from lakeproof.spark.jvm.typed_json import json_of, read_typed
from lakeproof.spark.reading.catalyst import CatalystNode, Translation, translated, trees_of
from lakeproof.spark.reading.partition_columns import ConstantColumn, as_ddl, by_values, rows_that_match

_ESCAPED = r'["\\\\\x00-\x1f]'  # what JSON cannot hold as it is
_BYTES_PER_FILE = 500  # of a listed file in the JVM: its status, its path, the texts of both


class FileGroup(NamedTuple):
    """Files that share the values of the hidden and the partition columns; `files` are row numbers of the plan."""

    hidden: tuple[bytes | int | str | None, ...]
    files: Sequence[int]


class ScanSource:
    """One table at one snapshot: plans it once per filter, from any thread."""

    def __init__(
        self,
        table: Table,
        snapshot_id: int | None,
        columns: Mapping[str, str],
        key: str,
        *,
        schema: Schema,
        at_head: bool,
    ) -> None:
        self.table, self.snapshot_id, self.columns = table, snapshot_id, columns
        self.key = key  # what makes two sources the same rows
        self.schema, self.at_head = schema, at_head  # planned with a schema that the snapshot may not have seen yet
        self.last: ScanPlan | None = None
        self._plans: OrderedDict[Expression, ScanPlan] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def label(self) -> str:
        """The table's name."""
        return ".".join(self.table.name())

    def planned(self, row_filter: Expression = ALWAYS) -> ScanPlan:
        """The files that may hold a matching row."""
        with self._lock:
            found = self._plans.get(row_filter)
            if found is None:
                found = self._plans[row_filter] = self._plan(row_filter)
                while len(self._plans) > 16:
                    self._plans.popitem(last=False)
            self.last = found
            return found

    def _plan(self, row_filter: Expression) -> ScanPlan:
        predicate = from_filter(row_filter, self.schema)
        return plan(self.table, predicate, snapshot_id=None if self.at_head else self.snapshot_id, case_sensitive=True)

    def spelled(self, columns: Mapping[str, str]) -> ScanSource:
        """The same source for a relation that spells its columns in another way."""
        return ScanSource(self.table, self.snapshot_id, columns, self.key, schema=self.schema, at_head=self.at_head)

    def translated(self, trees: Iterable[CatalystNode]) -> Translation:
        """Spark's conditions on this scan as a filter on the table."""
        return translated(trees, self.columns)


class HandedOver:
    """Lists of files that Spark was given before: the most recent ones, in no more than an eighth of its memory.

    A snapshot never changes, so that the same question to it has the same answer.
    """

    def __init__(self, gateway: Gateway) -> None:
        heap = int(gateway.jvm.java.lang.Runtime.getRuntime().maxMemory())
        self.most_files = heap // 8 // _BYTES_PER_FILE
        self._kept: OrderedDict[tuple[str, int], tuple[ScanPlan, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, index: str, plan: ScanPlan, make: Callable[[], Any]) -> Any:
        """The list of an index for a plan (which is held, so that no other can have its identity)."""
        key = (index, id(plan))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        made = make()
        with self._lock:
            self._kept[key] = (plan, made)
            while sum(known.files.num_rows for known, _ in self._kept.values()) > self.most_files:
                self._kept.popitem(last=False)
        return made


class ManagedFileIndex(JavaProxy):
    """The `FileIndex` of one source."""

    def __init__(
        self,
        gateway: Gateway,
        source: ScanSource,
        hidden_schema: str = "",
        only: frozenset[str] | None = None,
        columns: Sequence[ConstantColumn] = (),
    ) -> None:
        super().__init__(gateway)
        self.source, self.only, self.partition_columns = source, only, columns
        # With a root path Spark would let INSERT write files beside the metadata; without one it refuses.
        self._no_roots = gateway.once("no roots", lambda: gateway.sequence(()))
        declared = ", ".join([*([hidden_schema] if hidden_schema else []), *as_ddl(columns)])
        read = gateway.static(spark41.STRUCT_TYPE, "fromDDL")
        self.hidden_schema = (
            gateway.once(f"schema {declared}", lambda: read(declared)) if declared else gateway.empty_schema
        )
        hidden = [part.split()[0] for part in hidden_schema.split(", ") if part]
        self.names = [*hidden, *(column.field.name for column in columns)]
        self._size: int | None = None

    def groups(self, planned: ScanPlan) -> list[FileGroup]:
        """The planned files by the values of the hidden columns."""
        return [FileGroup((), self.kept(planned))]

    def kept(self, planned: ScanPlan) -> Sequence[int]:
        """The planned files that belong to this index, by number; another relation reads the rest."""
        if self.only is None:
            return range(planned.files.num_rows)
        return [number for number, path in enumerate(planned.files["path"].to_pylist()) if path in self.only]

    def statuses(self, planned: ScanPlan, files: Sequence[int]) -> Any:
        """Some of the planned files as Spark lists them."""
        return _statuses(self.gateway, FileGroup((), files), _status_texts(planned.files))

    @from_java
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        """The files to read. Spark does not look again at `partition_filters`, so they are decided here."""
        asked = int(partition_filters.size()) if self.partition_columns else 0
        trees = trees_of(self.gateway, partition_filters.appendedAll(data_filters) if asked else data_filters)
        planned = self.source.planned(self.source.translated(trees).filter)

        def listed() -> Any:
            groups = self._apart(planned)
            if asked:
                rows = [group.hidden for group in groups]
                groups = [groups[n] for n in rows_that_match(self.gateway, partition_filters, self.names, rows)]
            return directories(self.gateway, planned.files, groups)

        # The others know more than the snapshot says; and where the filter says less than was asked, so does the plan.
        if type(self) is not ManagedFileIndex or not self.source.translated(trees[:asked]).exact:
            return listed()
        return self.gateway.once("handed over", lambda: HandedOver(self.gateway)).get(self.toString(), planned, listed)

    def _apart(self, planned: ScanPlan) -> list[FileGroup]:
        """The groups, and within each the files by the values of the partition columns."""
        groups = self.groups(planned)
        if not self.partition_columns:
            return groups
        same = by_values(planned, self.partition_columns)
        if len(groups) == 1 and len(groups[0].files) == planned.files.num_rows:
            return [FileGroup((*groups[0].hidden, *each.values), each.files) for each in same]
        values = {number: each.values for each in same for number in each.files}
        apart: dict[tuple[int, tuple[Any, ...]], list[int]] = {}
        for at, group in enumerate(groups):
            for number in group.files:
                apart.setdefault((at, values[number]), []).append(number)
        return [FileGroup((*groups[at].hidden, *these), files) for (at, these), files in apart.items()]

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

    def isTimeTravel(self) -> bool:
        """Asked from Spark 4.3 on; its own answer: which snapshot is read stands in the name already."""
        return False

    def toString(self) -> str:
        """The key: equal keys are equal relations, so that a cached DataFrame is found again."""
        part = "" if self.only is None else f" part {hash(self.only)}"
        return f"lakeproof {self.source.key}{part}"

    class Java:
        """What py4j reads."""

        implements = [spark41.FILE_INDEX]  # noqa: RUF012 - py4j asks for a list


def directories(gateway: Gateway, files: pa.Table, groups: Sequence[FileGroup]) -> Any:
    """The groups as Spark's `Seq[PartitionDirectory]`, in one call."""
    statuses = _status_texts(files)
    if len(groups) == 1 and not groups[0].hidden:
        return gateway.one(_directory(gateway, groups[0], statuses))
    text = ",".join(_as_json(group, statuses) for group in groups)
    found = read_typed(gateway, f"[{text}]", gateway.list_of(spark41.PARTITION_DIRECTORY))
    return gateway.static(spark41.PYTHON_UTILS, "toSeq")(found)


def _status_texts(files: pa.Table) -> list[str]:
    """Each file as JSON; by array operations, for there may be a million."""
    paths = files["path"].combine_chunks()
    for ours, hadoops in SCHEMES.items():
        paths = pc.replace_substring_regex(paths, f"^{ours}", hadoops)
    if pc.any(pc.match_substring_regex(paths, _ESCAPED)).as_py():
        quoted = pa.array([json.dumps(path) for path in paths.to_pylist()], pa.large_string())
    else:
        quoted = pc.binary_join_element_wise(_text('"'), paths, _text('"'), _text(""))
    sizes = files["size"].combine_chunks().cast(pa.large_string())
    whole = pc.binary_join_element_wise(_text('{"path":'), quoted, _text(',"length":'), sizes, _text("}"), _text(""))
    texts: list[str] = whole.to_pylist()
    return texts


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _statuses(gateway: Gateway, group: FileGroup, statuses: Sequence[str]) -> Any:
    text = f"[{','.join(statuses[number] for number in group.files)}]"
    return gateway.built(text, gateway.class_of("[Lorg.apache.hadoop.fs.FileStatus;"))


def _directory(gateway: Gateway, group: FileGroup, statuses: Sequence[str]) -> Any:
    row = gateway.once(
        "empty row", lambda: read_typed(gateway, '{"values":[]}', gateway.class_of(spark41.GENERIC_INTERNAL_ROW))
    )
    return gateway.named(spark41.PARTITION_DIRECTORY).apply(row, _statuses(gateway, group, statuses))


def _as_json(group: FileGroup, statuses: Sequence[str]) -> str:
    files = ",".join(f'{{"fileStatus":{statuses[number]},"metadata":{{}}}}' for number in group.files)
    return f'{{"values":{{"values":{json_of(group.hidden)}}},"files":[{files}]}}'
