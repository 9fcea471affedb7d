"""Runs the list of statements on one engine and says what each answered: columns, rows, looks, or the error.

As a script: `python run_statements.py apache-iceberg answers.json [--sample] [chapter ...]` (or `lakeproof`).
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from statement_list import Chapter, Step, read_chapters

from lakeproof.audit import audit
from lakeproof.audit.deep import Depth
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import LakeproofError
from lakeproof.iceberg.tables.catalogs import open_catalog
from lakeproof.iceberg.tables.tables import joined_name, list_namespaces, list_tables, load_table
from lakeproof.replay.apache_iceberg import PACKAGES
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import connect
from lakeproof.spark.statements.results import json_value

Answer = dict[str, Any]
_PLACEHOLDER = re.compile(r"\{(snap|ms|s|place|metadata):([a-z0-9_.]+)(?::(-?\d+))?\}|\{(?:warehouse|catalog)\}")
_STAGED = "/metadata/copy-table-staging-"
_ID = re.compile(r"\b\d{16,19}\b")
_TABLES = ("e", "w", "po", "inc", "t")  # whose snapshots are told by their order
_QUERY = re.compile(r"\s*(select|show|describe|desc|explain|from .* select|with .* select|table)\b", re.IGNORECASE)


def _only_reads(text: str) -> bool:
    """Whether it is a query that is not the source of an INSERT."""
    return _QUERY.match(text) is not None and " insert " not in text.lower()


def apache_iceberg(folder: Path) -> SparkSession:
    """Apache Iceberg as the session's own catalog, beside Spark's tables, and once more under the name `lakeproof`."""
    conf = {
        "spark.jars.packages": ",".join(PACKAGES),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "spark"),
    }
    for name, kind in (("spark_catalog", "SparkSessionCatalog"), ("lakeproof", "SparkCatalog")):
        key = f"spark.sql.catalog.{name}"
        conf |= {
            key: f"org.apache.iceberg.spark.{kind}",
            f"{key}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{key}.uri": f"jdbc:sqlite:{folder / 'catalog.db'}",
            f"{key}.jdbc.schema-version": "V1",
            f"{key}.warehouse": str(folder),
            f"{key}.cache-enabled": "false",
        }
    session = build_session(str(folder), master="local[2]", quick=True, conf=conf)
    session.sql("create namespace if not exists lakeproof.default")
    return session


def lakeproof(folder: Path) -> SparkSession:
    """Plain `spark.sql` on a connected session, in which a table that names no provider is Iceberg's."""
    conf = {
        "spark.sql.sources.default": "iceberg",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "spark"),
    }
    session = build_session(str(folder), master="local[2]", quick=True, conf=conf)
    connect(session, f"sqlite:///{folder / 'catalog.db'}", str(folder))
    return session


ENGINES: dict[str, Callable[[Path], SparkSession]] = {"apache-iceberg": apache_iceberg, "lakeproof": lakeproof}


class Run:
    """One engine at the list."""

    def __init__(self, engine: str, folder: Path, *, sample: bool = False) -> None:
        self.spark, self.folder, self.sample = ENGINES[engine](folder), folder, sample
        self.ids: dict[str, str] = {}
        # Apache Iceberg lists tables and knows functions in catalogs of its own alone, and not in the session's.
        self.catalog = "spark_catalog" if engine == "lakeproof" else "lakeproof"

    def chapter(self, chapter: Chapter) -> Iterator[tuple[int, Answer]]:
        """The answers of the cases of a chapter, by number."""
        self.clean()
        for step in chapter.steps:
            if step.kind == "conf":
                self._set(step.text)
                continue
            if self.sample and step.number is not None and step.number % 5 and _only_reads(step.text):
                continue  # nothing that comes later depends on it
            answer = self._answer(step)
            if step.number is None:
                if "error" in answer:
                    answer["in set-up"] = step.text
                    yield 0, answer
                continue
            if "rows" in answer and not answer["rows"] and not _QUERY.match(step.text):
                left_out = self.sample and step.number % 4
                looks = [] if left_out else [self._look(look) for look in chapter.looks]
                answer |= {"looks": looks} if looks else {}
            yield step.number, self._told(answer)

    def clean(self) -> None:
        """The catalog is as it was: no table, no view, no namespace but `default`."""
        self._set("spark.wap.branch ")
        self._set("spark.wap.id ")
        self._try("use spark_catalog.default")
        for catalog in ("lakeproof", "spark_catalog"):
            names = self._try(f"show namespaces in {catalog}") or []
            for (namespace,) in names:
                for row in self._try(f"show views in {catalog}.{namespace}") or []:
                    place = "" if row.isTemporary else f"{catalog}.{namespace}."
                    self._try(f"drop view if exists {place}{row.viewName}")
                for row in self._try(f"show tables in {catalog}.{namespace}") or []:
                    if not row.isTemporary:
                        self._try(f"drop table if exists {catalog}.{namespace}.{row.tableName}")
                if namespace != "default":
                    self._try(f"drop namespace if exists {catalog}.{namespace} cascade")
        self.spark.catalog.clearCache()
        for path in self.folder.iterdir():  # a table that was registered twice cannot be purged twice
            if path.is_dir() and path.name != "spark":
                shutil.rmtree(path)
        self._try(f"use {self.catalog}.default")
        self.ids = {}

    def _try(self, text: str) -> Any:
        try:
            return self.spark.sql(text).collect()
        except Exception:
            return None

    def _set(self, text: str) -> None:
        name, _, value = text.partition(" ")
        if value.strip():
            self.spark.conf.set(name, value.strip())
        else:
            self.spark.conf.unset(name)

    def _answer(self, step: Step) -> Answer:
        try:
            text = self._filled(step.apache if step.apache and self.catalog == "lakeproof" else step.text)
            found = self.spark.sql(text) if step.kind == "sql" else self._called(text)
            return self._shown(found)
        except Exception as error:
            return {"error": _error(error), "kind": _kind(error)}

    def _look(self, text: str) -> Any:
        try:
            return self._shown(self.spark.sql(self._filled(text)))
        except Exception as error:
            return {"error": _error(error)}

    def _called(self, text: str) -> Any:
        df = self.spark.createDataFrame([(1, "df"), (9, "new")], "id int, data string").alias("src")
        names = {"spark": self.spark, "F": F, "df": df, "streamed": self._streamed, "written": self._written}
        return eval(text, names)

    def _streamed(self, rows: DataFrame) -> Any:
        query = rows.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
        query.awaitTermination(60)
        return self.spark.sql("select * from streamed")

    def _written(self, query: Any) -> Any:
        query.processAllAvailable()
        query.stop()
        return self.spark.table("sink")

    def _shown(self, found: Any) -> Answer:
        if isinstance(found, DataFrame):
            rows = [[json_value(value) for value in row] for row in found.collect()]
            columns = [[field.name, field.dataType.simpleString()] for field in found.schema.fields]
            return {"columns": columns, "rows": rows}
        return {"columns": [], "rows": [] if found is None else [[json_value(found)]]}

    def _told(self, answer: Answer) -> Answer:
        """The answer with the warehouse's folder and the ids of snapshots told by names."""
        text = json.dumps(answer).replace(str(self.folder), "{warehouse}")
        unknown = set(_ID.findall(text)) - self.ids.keys()
        for table in _TABLES if unknown else ():
            listed = self._try(f"select snapshot_id from default.{table}.snapshots order by committed_at") or []
            for number, (snapshot_id,) in enumerate(listed, 1):
                self.ids.setdefault(str(snapshot_id), f"{{snapshot {number} of {table}}}")
        found: Answer = json.loads(text)
        known = {each: self.ids[each] for each in _ID.findall(text) if each in self.ids}
        return found | ({"ids": known} if known else {})

    # ---- placeholders

    def _filled(self, text: str) -> str:
        return _PLACEHOLDER.sub(self._value, text)

    def _value(self, wanted: re.Match[str]) -> str:
        if wanted[1] is None:
            return self.catalog if wanted[0] == "{catalog}" else str(self.folder)
        kind, name, number = wanted[1], wanted[2], int(wanted[3] or 1)
        if kind == "place":
            return self._location(name)
        if kind == "metadata":
            folder = Path(self._location(name).removeprefix("file:").replace("///", "/")) / "metadata"
            return str(max(folder.glob("*.metadata.json"), key=lambda path: path.stat().st_mtime_ns))
        full = name if "." in name else f"default.{name}"
        rows = self.spark.sql(f"select snapshot_id, committed_at from {full}.snapshots order by committed_at").collect()
        chosen = rows[number - 1 if number > 0 else number]
        millis = round(chosen[1].timestamp() * 1000)
        return {"snap": str(chosen[0]), "ms": str(millis), "s": str(millis // 1000 + 1)}[kind]

    def _location(self, name: str) -> str:
        rows = self.spark.sql(f"describe extended {name}").collect()
        return next(str(row[1]) for row in rows if row[0] == "Location")


def audited(folder: Path) -> Iterator[str]:
    """What `audit --deep` finds in any table that is there."""
    catalog = open_catalog(f"sqlite:///{folder / 'catalog.db'}", str(folder))
    for namespace in list_namespaces(catalog):
        for table in list_tables(catalog, namespace):
            name = joined_name([namespace, table])
            found = audit(load_table(catalog, name), POLICIES["lakeproof"], name=name, depth=Depth(footers=True))
            for one in found.findings:
                if one.kind == "unreferenced_file" and all(_STAGED in file for file in one.files):
                    continue  # case 358 stages a copy of the metadata, as Apache Iceberg does: the audit tells it
                yield f"{name}: {one.kind}: {one.because}"


def _error(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}"[:300]


def _kind(error: Exception) -> str:
    if isinstance(error, LakeproofError):
        return "refused"
    return "spark" if isinstance(error, PySparkException) else "raw"


def run_list(engine: str, chosen: list[str]) -> dict[str, Any]:
    """The answers of an engine to the chosen chapters (none: all), by the number of the case.

    `--sample`: a fifth of the queries, and of the looks a quarter; everything else is run, since cases build on it.
    """
    folder = Path(tempfile.mkdtemp(prefix="statements-"))
    answers: dict[str, Answer] = {}
    try:
        run = Run(engine, folder, sample="--sample" in chosen)
        named = [name for name in chosen if name != "--sample"]
        for chapter in read_chapters():
            if not named or chapter.name in named:
                for number, answer in run.chapter(chapter):
                    answers[str(number) if number else f"set-up {answer['in set-up']}"] = answer
                if engine == "lakeproof":
                    answers[f"audit {chapter.name}"] = {"found": list(audited(folder))}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"folder": str(folder), **answers}


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(run_list(sys.argv[1], sys.argv[3:]), indent=0, sort_keys=True))
