"""Runs a scenario on a real table: each actor is a writer on Spark, stepped through the phases of its statement."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import types as spark

from lakeproof.commit import POLICIES, Command, Policy
from lakeproof.commit.meaning import Effect, Exists, effect
from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, InvalidInput
from lakeproof.filters import Expression
from lakeproof.format import Row, Value
from lakeproof.iceberg.committing.commit import (
    ATTEMPTING,
    FILES_WRITTEN,
    FOUND,
    LOOKING,
    METADATA_WRITTEN,
    RUNNING_AGAIN,
    SCANNED,
    SWAPPED,
)
from lakeproof.iceberg.committing.table_commits import POLICY_PROPERTY
from lakeproof.iceberg.committing.whole_file_commits import append
from lakeproof.iceberg.pyiceberg_names import DataFile, Table
from lakeproof.iceberg.upkeep.expire import expire_snapshots
from lakeproof.replay.stepping import ENDED, SteppedWriter
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.text import Rows, Scenario, ScenarioStep, StepAnswer
from lakeproof.spark.jvm.spark_types import to_spark_schema
from lakeproof.spark.lake import Lake
from lakeproof.spark.row_level.new_rows import with_partitions
from lakeproof.spark.statements.local_rows import local_rows
from lakeproof.spark.writing.leftovers import remove_folder
from lakeproof.spark.writing.spark_write import new_folder, with_statistics
from lakeproof.spark.writing.worker_write import driver_files

_COMPACTION = re.compile(r"rewrite_data_files\s*\(\s*'[^']*'\s*\)", re.IGNORECASE)
_COMMANDS = ("update", "merge", "delete", "insert")
_UNSTEPPED = ("set", "swap-delayed", "arrives")


class AgainstTables:
    """A table of its own for one scenario under one policy; `close` drops it."""

    newest_version = 3

    def __init__(self, lake: Lake, scenario: Scenario, policy: Policy, *, keep: str | None = None) -> None:
        require_applicable(scenario, self.newest_version)
        self.lake, self.scenario, self.policy = lake, scenario, policy
        self.own = {actor: POLICIES[name] for actor, name in scenario.policy_of}
        self.space = f"scenario_{uuid.uuid4().hex[:8]}"
        self.name = _table_name(scenario).lower()
        self.kept_as = keep
        self.writers: dict[str, SteppedWriter] = {}
        self.crashed: list[SteppedWriter] = []
        self.numbers: dict[int, int] = {}
        self._create()
        self._note_snapshots()

    # ------------------------------------------------------------ what is seen

    def rows(self) -> tuple[Row, ...]:
        """What a reader sees now."""
        found = self.lake.collect(self.lake.table(self.full_name).scan())
        words = [kind == "string" and not mixed for kind, mixed in _columns(self.scenario).values()]
        return tuple(
            tuple(value if word else _number(value) for value, word in zip(row, words, strict=True)) for row in found
        )

    def seen(self, what: str) -> tuple[str, ...] | None:
        """The operations of the snapshots; files have names of their own."""
        if what != "snapshots":
            return None
        return tuple(one.operation for one in self.lake.table(self.full_name).snapshots())

    @property
    def full_name(self) -> str:
        """The table with its namespace."""
        return f"{self.space}.{self.name}"

    def _table(self) -> Table:
        return self.lake.engine.load(self.full_name)

    # ------------------------------------------------------------ steps

    def step(self, step: ScenarioStep) -> StepAnswer | None:
        """Take one step; `None` where a step has no answer."""
        with self._in_space():
            outcome = self._step(step)
        self._note_snapshots()
        return outcome

    def _step(self, step: ScenarioStep) -> StepAnswer | None:
        actor = step.actor
        if step.verb == "scan":
            self._scan(step)
            return None
        if step.verb == "expire":
            wanted = {number: snapshot for snapshot, number in self.numbers.items()}[int(step.text)]
            expire_snapshots(self._table(), snapshot_ids=(wanted,))
            return None
        writer = self.writers.get(actor)
        if writer is None:
            place = f"{self.scenario.name}:{step.line}"
            raise InvalidInput(f"{actor} has nothing to {step.verb}", place=place, hint="let it scan first")
        match step.verb:
            case "crash":
                self.crashed.append(self.writers.pop(actor))
                return None
            case "write":
                writer.until([FILES_WRITTEN])
                return None
            case "validate":
                return self._validate(writer)
            case "commit":
                return self._commit(writer)
        return self._swap(writer, loses_answer=step.verb == "swap-unanswered")

    def _scan(self, step: ScenarioStep) -> None:
        known = self.writers.get(step.actor)
        if known is not None and known.at == RUNNING_AGAIN:
            known.until([SCANNED])
            return
        text = _COMPACTION.sub(
            f"rewrite_data_files('{self.full_name}', options => map('rewrite-all', 'true'))", step.text
        )
        policy = self.own.get(step.actor, self.policy)
        writer = SteppedWriter(self.lake, lambda lake: lake.sql(text), policy=policy, whole_files=False)
        self.writers[step.actor] = writer
        writer.until([SCANNED])

    def _validate(self, writer: SteppedWriter) -> StepAnswer:
        if writer.at == METADATA_WRITTEN:  # validated before, and the swap not tried: nothing is asked again
            return StepAnswer("ok")
        at = writer.until([METADATA_WRITTEN, RUNNING_AGAIN])
        if at == METADATA_WRITTEN:
            return StepAnswer("ok")
        return self._conflict(writer.conflicts[-1]) if at == RUNNING_AGAIN else self._ended(writer)

    def _swap(self, writer: SteppedWriter, *, loses_answer: bool) -> StepAnswer:
        if writer.at != METADATA_WRITTEN:
            return StepAnswer("unknown" if loses_answer else "rejected")
        writer.loses_answer = loses_answer
        at = writer.until([SWAPPED, ATTEMPTING])
        if at == ATTEMPTING:
            return StepAnswer("rejected")
        if loses_answer:
            writer.until([LOOKING])
            return StepAnswer("unknown")
        writer.until([])
        return StepAnswer("ok")

    def _commit(self, writer: SteppedWriter) -> StepAnswer:
        writer.until([])
        outcome = self._ended(writer)
        again = bool(writer.conflicts) and outcome.word in ("ok", "nothing left")
        return StepAnswer("ok re-run") if again else outcome

    def _ended(self, writer: SteppedWriter) -> StepAnswer:
        """What became of a writer that has ended."""
        assert writer.at == ENDED
        error = writer.error
        if isinstance(error, CommitConflict):
            return self._conflict(error.conflict)
        if isinstance(error, CommitUnknown):
            return StepAnswer("unknown")
        if isinstance(error, CommitRejected):
            return StepAnswer("rejected")
        if error is not None:
            raise error
        if FOUND in writer.passed:
            return StepAnswer("already committed")
        return StepAnswer("ok" if SWAPPED in writer.passed else "nothing left")

    def _conflict(self, conflict: Any) -> StepAnswer:
        self._note_snapshots()
        number = None if conflict.snapshot is None else self.numbers.get(conflict.snapshot)
        return StepAnswer("conflict", conflict.check, number)

    def _note_snapshots(self) -> None:
        for snapshot in self.lake.table(self.full_name).snapshots():
            self.numbers.setdefault(snapshot.snapshot_id, len(self.numbers) + 1)

    # ------------------------------------------------------------ the table

    def _create(self) -> None:
        lake, line = self.lake, self.scenario.table
        properties = {
            "format-version": str(line.shape.format_version),
            "write.update.mode": str(line.update_mode),
            "write.merge.mode": str(line.update_mode),
            "write.delete.mode": str(line.delete_mode),
            "commit.retry.min-wait-ms": "1",
            POLICY_PROPERTY: self.policy.name,
            **{
                f"write.{what}.isolation-level": str(line.isolation) for what in ("update", "merge", "delete", "insert")
            },
        }
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        columns = ", ".join(f"`{name}` {kind}" for name, (kind, _) in _columns(self.scenario).items())
        parts = ", ".join(_partition(field.column, field.transform) for field in line.shape.specs[0])
        lake.sql(f"create namespace {self.space}")
        by = f"partitioned by ({parts}) " if parts else ""
        lake.sql(f"create table {self.full_name} ({columns}) using iceberg {by}tblproperties ({told})")
        files = [file for rows in self.scenario.rows for file in self._files(rows)]
        if files:
            append(self._table(), files)

    def _files(self, rows: Sequence[Row]) -> tuple[DataFile, ...]:
        """One data file for each partition of these rows, in their order."""
        table = self._table()
        schema = to_spark_schema(table.schema())
        kinds = spark.StructType([spark.StructField(field.name, field.dataType, True) for field in schema.fields])
        known = with_partitions(local_rows(self.lake.spark, rows, kinds), table, []).toArrow()
        names = known.column_names[len(schema.fields) :]
        return with_statistics(table, driver_files(known, names, new_folder(table), table))

    @contextmanager
    def _in_space(self) -> Iterator[None]:
        before = self.lake.spark.catalog.currentDatabase()
        dynamic = self.scenario.table.dynamic_overwrite
        # An INSERT of two rows is one file, as in the model.
        told = {
            "spark.sql.sources.partitionOverwriteMode": "dynamic" if dynamic else "static",
            "spark.sql.leafNodeDefaultParallelism": "1",
        }
        self.lake.spark.catalog.setCurrentDatabase(self.space)
        for name, value in told.items():
            self.lake.spark.conf.set(name, value)
        try:
            yield
        finally:
            self.lake.spark.catalog.setCurrentDatabase(before)
            for name in told:
                self.lake.spark.conf.unset(name)

    def close(self) -> None:
        """Writers that still wait are given up; the table is dropped, or keeps its rows under another name."""
        for writer in (*self.writers.values(), *self.crashed):
            writer.abandon()
        if self.kept_as is None:
            folder = self._table().location().rpartition("/")[0]
            self.lake.sql(f"drop table {self.full_name}")
            if folder.endswith(self.space):
                remove_folder(self.lake.engine.gateway, folder)
        else:
            self.lake.sql(f"alter table {self.full_name} rename to {self.kept_as}")
        self.lake.sql(f"drop namespace {self.space}")


def require_applicable(scenario: Scenario, newest_version: int = 3) -> None:
    """Refuse what real writers cannot be asked for: calls without SQL, newer formats, requests that arrive late."""
    if scenario.files:
        raise DoesNotApply("Real tables are written with rows")
    if scenario.table.shape.format_version > newest_version:
        raise DoesNotApply(f"Real tables are written here in format v{newest_version} at most")
    for step in scenario.steps:
        if isinstance(step, ScenarioStep) and (step.call is not None or step.verb in _UNSTEPPED):
            raise DoesNotApply(f"Real writers do not take the step '{step.verb}'")
        if isinstance(step, ScenarioStep) and step.verb == "scan" and step.text.lower().startswith("upsert"):
            raise DoesNotApply("Equality deletes are read, never written")


def _table_name(scenario: Scenario) -> str:
    """The name that the scenario's SQL uses."""
    for step in scenario.steps:
        if isinstance(step, ScenarioStep) and step.verb == "scan":
            found = re.search(r"(?:into|overwrite|update|from|rewrite_data_files\(')\s*(\w+)", step.text, re.IGNORECASE)
            if found:
                return found[1]
    return "t"


def _columns(scenario: Scenario) -> dict[str, tuple[str, bool]]:
    """A column is a number where only numbers are ever in it; and whether words and numbers are mixed in it."""
    shape = scenario.table.shape
    known: list[Row] = [row for rows in scenario.rows for row in rows]
    for line in scenario.steps:
        if isinstance(line, Rows):
            known += line.rows
        elif isinstance(line, ScenarioStep) and line.verb == "scan":
            command = command_of(line.text, shape, scenario.table.dynamic_overwrite, f"{scenario.name}:{line.line}")
            known += command.rows if command.command is not Command.REWRITE else ()
    return {name: _type([row[at] for row in known]) for at, name in enumerate(shape.columns)}


def _type(values: Sequence[Value]) -> tuple[str, bool]:
    numbers = [isinstance(value, int) for value in values if value is not None]
    return "bigint" if numbers and all(numbers) else "string", any(numbers)


def _number(value: Any) -> Any:
    """A number that went through a column of text is a number again, as the scenario has it."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d+", value) else value


def _partition(column: str, transform: str) -> str:
    name, _, width = transform.partition("[")
    if name == "identity":
        return f"`{column}`"
    return f"{name}({width.rstrip(']')}, `{column}`)" if width else f"{name}s(`{column}`)"


def effect_on(scenario: Scenario, step: ScenarioStep, rows: Sequence[Row]) -> Effect:
    """What the SQL of a `scan` does to these rows."""
    shape, place = scenario.table.shape, f"{scenario.name}:{step.line}"
    return effect(command_of(step.text, shape, scenario.table.dynamic_overwrite, place), rows, shape.columns)


def command_kind(scenario: Scenario, step: ScenarioStep) -> str:
    """The command of a `scan` line, in capitals."""
    shape, place = scenario.table.shape, f"{scenario.name}:{step.line}"
    return str(command_of(step.text, shape, scenario.table.dynamic_overwrite, place).command)


def where_of(scenario: Scenario, step: ScenarioStep) -> tuple[Expression, tuple[Exists, ...]]:
    """The predicate of a `scan` line, and its subqueries."""
    shape, place = scenario.table.shape, f"{scenario.name}:{step.line}"
    command = command_of(step.text, shape, scenario.table.dynamic_overwrite, place)
    return command.where, command.exists
