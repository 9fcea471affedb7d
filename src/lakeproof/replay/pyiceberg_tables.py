"""Runs a scenario's actors on PyIceberg: each scan stages a transaction, each commit sends it.

Actors with a policy of their own stay writers of ours: PyIceberg writes no position deletes, so another engine must.
PyIceberg says no check's name; where a conflict is expected, a conflict is what is compared.
"""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.table import Table, Transaction

from lakeproof.format import Row
from lakeproof.iceberg.predicates import from_filter
from lakeproof.replay.scenario_runner import command_kind, effect_on, where_of
from lakeproof.replay.whole_commits import AgainstEngine, refusal_of, require_whole_commits
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.text import Scenario, ScenarioStep, StepAnswer
from lakeproof.spark.lake import Lake

_BY_FILE = ("UPDATE", "MERGE", "REWRITE")


class AgainstPyiceberg(AgainstEngine):
    """PyIceberg's writers on a table of ours."""

    engine = "PyIceberg"

    def __init__(self, lake: Lake, scenario: Scenario, policy: Any, *, keep: str | None = None) -> None:
        require_whole_commits(scenario, self.engine)
        super().__init__(lake, scenario, policy, keep=keep)
        self.staged: dict[str, Transaction] = {}

    def _begin(self, step: ScenarioStep) -> None:
        self.staged[step.actor] = self._stage(step)

    def _crash(self, step: ScenarioStep) -> None:
        self.staged.pop(step.actor)

    def _stage(self, step: ScenarioStep) -> Transaction:
        table = self.lake.engine.catalog.load_table(tuple(self.full_name.split(".")))
        staged = table.transaction()
        kind = command_kind(self.scenario, step)
        if kind == "INSERT":
            staged.append(_arrow(table, effect_on(self.scenario, step, ()).added))
        elif kind == "DELETE":
            where, guards = where_of(self.scenario, step)
            if guards:
                raise DoesNotApply("PyIceberg has no subqueries")
            with warnings.catch_warnings():  # that it writes no position deletes is known
                warnings.simplefilter("ignore", UserWarning)
                staged.delete(from_filter(where, table.schema()))
        elif kind in _BY_FILE:
            self._stage_files(table, staged, step, rewrites=kind == "REWRITE")
        else:
            raise DoesNotApply(f"PyIceberg has no {kind}")
        return staged

    def _stage_files(self, table: Table, staged: Transaction, step: ScenarioStep, *, rewrites: bool) -> None:
        """File by file, as a program must that updates or compacts with PyIceberg."""
        tasks = list(table.scan().plan_files())
        read = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        files = [[tuple(row.values()) for row in read.to_table([task]).to_pylist()] for task in tasks]
        done = effect_on(self.scenario, step, [row for rows in files for row in rows])
        changed, start = dict(done.changed), 0
        with staged.update_snapshot().overwrite() as overwrite:
            new: list[Row] = list(done.added)
            for task, rows in zip(tasks, files, strict=True):
                numbers = range(start, start + len(rows))
                start += len(rows)
                if not rewrites and not any(number in changed for number in numbers):
                    continue
                overwrite.delete_data_file(task.file)
                kept = [changed.get(n, row) for n, row in zip(numbers, rows, strict=True)]
                new += [row for row in kept if row is not None]
            for file in _dataframe_to_data_files(table.metadata, _arrow(table, new), table.io) if new else ():
                overwrite.append_data_file(file)

    def _finish(self, step: ScenarioStep) -> StepAnswer:
        staged = self.staged.pop(step.actor)
        try:
            staged.commit_transaction()
        except (CommitFailedException, ValidationException):
            return refusal_of(step)
        return StepAnswer("ok")


def _arrow(table: Table, rows: Any) -> pa.Table:
    schema = table.schema().as_arrow()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    texts = [[_fitting(value, field.type) for value in column] for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(texts, schema, strict=True)], schema=schema)


def _fitting(value: Any, kind: Any) -> Any:
    return str(value) if value is not None and pa.types.is_large_string(kind) else value
