"""An episode is run on a managed table and judged by plain Spark; what differs is told whole, and made smaller."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from canonical_rows import Row, canonical
from plain_spark import Plain, Refusal
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from random_predicates import may_skip_rows, said
from steps import Alter, Copy, Create, Delete, Episode, Insert, Merge, Read, Step, Update
from wording import Said, managed

from lakeproof.errors import LakeproofError
from lakeproof.spark.lake import Lake

_numbers = count(1)


class Failed(NamedTuple):
    """An error by the conditions that it may have; `ours`: a sentence of our own stands for it."""

    conditions: tuple[str, ...]
    message: str
    ours: bool = False


Outcome = list[Row] | Failed


class Difference(NamedTuple):
    """A statement that meant something else than in plain Spark."""

    episode: Episode
    at: int
    statement: Said
    got: Outcome
    expected: Outcome


class Tally:
    """How much was compared, and what was let pass."""

    def __init__(self) -> None:
        self.statements = self.failures_alike = self.rows_skipped = self.tables = self.read_by_pyiceberg = 0
        self.refused: dict[str, int] = {}

    def __str__(self) -> str:
        return (
            f"{self.statements} statements on {self.tables} tables, {self.failures_alike} failed alike, "
            f"{self.rows_skipped} failed in plain Spark on rows that were never read, "
            f"{self.read_by_pyiceberg} tables read by PyIceberg"
        )


class Oracle:
    """Runs episodes; `plain` is a session that knows no managed table."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.plain, self.tally = lake, lake.spark.newSession(), Tally()

    def differences(self, episode: Episode, *, by_pyiceberg: bool = False, first: bool = False) -> list[Difference]:
        """Where the managed table and plain Spark part ways (`first`: for the first time)."""
        for session in (self.lake.spark, self.plain):
            session.conf.set("spark.sql.ansi.enabled", str(episode.ansi).lower())
            session.conf.set("spark.sql.session.timeZone", episode.time_zone)
        table = f"o{next(_numbers)}"
        judge = Plain(self.plain, episode.steps[0]) if isinstance(episode.steps[0], Create) else None
        assert judge is not None, "an episode begins with CREATE TABLE"
        self.tally.tables += 1
        try:
            run = _Run(self, episode, table, judge)
            found = list(islice(run.differences(), 1 if first else None))
            if by_pyiceberg and not found:
                found = self._read_by_pyiceberg(episode, table, judge, judged=not run.has_lost_the_judge)
            return found
        finally:
            judge.close()
            self.lake.spark.conf.set("spark.sql.ansi.enabled", "true")
            self.lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
            outcome_of(lambda: self.lake.spark.sql(f"drop table if exists {table}"))

    def _read_by_pyiceberg(self, episode: Episode, table: str, judge: Plain, *, judged: bool) -> list[Difference]:
        """PyIceberg's rows are the judge's, or, after a command that nobody else has computed, those of our scan."""
        found = self.lake.engine.find(f"default.{table}")
        if found is None or found.current_snapshot() is None:
            return []
        self.tally.read_by_pyiceberg += 1
        read = outcome_of(lambda: canonical(self.plain.createDataFrame(found.scan().to_arrow(), judge.rows().schema)))
        expected = outcome_of(lambda: canonical(judge.rows() if judged else self.lake.spark.table(table)))
        return [] if read == expected else [Difference(episode, -1, Said("PyIceberg reads the table"), read, expected)]


class _Run:
    """One episode on one table."""

    def __init__(self, oracle: Oracle, episode: Episode, table: str, judge: Plain) -> None:
        self.spark, self.tally = oracle.lake.spark, oracle.tally
        self.episode, self.table, self.judge = episode, table, judge
        self.has_lost_the_judge = False

    def differences(self) -> Iterator[Difference]:
        for at, step in enumerate(self.episode.steps):
            statement = managed(step, self.table)
            if isinstance(step, Create | Alter):
                refused = self._changed(step, statement)
                if refused is not None and not refused.ours:
                    yield Difference(self.episode, at, statement, refused, [])
                if refused is not None:  # what comes after it speaks of columns that are not there
                    return
                continue
            self.tally.statements += 1
            got, expected = self._both(step, statement)
            if _is_beyond_metadata(got) and isinstance(expected, list):
                self.tally.refused[f"{statement.text}: {got}"] = 1
                self.has_lost_the_judge = True
                return
            if not self._alike(step, got, expected):
                yield Difference(self.episode, at, statement, got, expected)
            if not isinstance(step, Read) and (isinstance(expected, Failed) or got != expected):
                if isinstance(got, Failed) and isinstance(expected, Failed):
                    continue
                self.has_lost_the_judge = True  # what a command did that plain Spark failed on, nobody has computed
                return

    def _changed(self, step: Create | Alter, statement: Said) -> Failed | None:
        """The schema changes on both sides, unless the product refuses to: then it is told why."""
        refused = outcome_of(lambda: self._say(statement))
        if isinstance(refused, Failed):
            self.tally.refused[f"{statement.text}: {refused.message}"] = 1
            return refused
        if isinstance(step, Alter):
            self.judge.alter(step)
        return None

    def _say(self, statement: Said) -> list[Row]:
        self._sql(statement).collect()
        return []

    def _sql(self, statement: Said) -> Any:
        if statement.arguments is None:
            return self.spark.sql(statement.text)
        return self.spark.sql(statement.text, statement.arguments)

    def _both(self, step: Step, statement: Said) -> tuple[Outcome, Outcome]:
        if isinstance(step, Read):
            zeros = "min(" in step.text or "max(" in step.text or "distinct" in step.text
            got = outcome_of(lambda: canonical(self._sql(statement), zeros_alike=zeros))
            return got, self._expected(got, lambda: canonical(self.judge.read(step), zeros_alike=zeros))
        got = outcome_of(lambda: self._say(statement))
        expected = self._expected(got, lambda: self._judged(step), undo=self.judge.undo)
        if isinstance(got, Failed) and isinstance(expected, Failed):
            after = outcome_of(lambda: canonical(self.spark.table(self.table)))
            untouched = outcome_of(lambda: canonical(self.judge.rows()))
            return (got, expected) if after == untouched else (after, untouched)
        if not isinstance(got, Failed):
            got = outcome_of(lambda: canonical(self.spark.table(self.table)))
        return got, expected

    def _expected(self, got: Outcome, judged: Callable[[], Any], undo: Callable[[], None] | None = None) -> Outcome:
        """Plain Spark's answer; what failed on the managed table while it ran may fail on local rows only if eager.

        A statement with two errors, one in a constant and one in a row, shows the first that is met. Spark computes
        constants before it reads a file, but not before it reads local rows: either error is the statement's own.
        """
        expected = outcome_of(judged)
        if not isinstance(got, Failed) or not _while_running(got):
            return expected
        if isinstance(expected, Failed) and self._same(got, expected):
            return expected
        if undo is not None and not isinstance(expected, Failed):
            undo()
        with self.judge.eager():
            again = outcome_of(judged)
        if isinstance(expected, Failed) and isinstance(again, Failed):
            return Failed((*expected.conditions, *again.conditions), f"{expected.message} or {again.message}")
        return again

    def _judged(self, step: Step) -> list[Row]:
        match step:
            case Insert():
                self.judge.insert(step)
            case Copy():
                self.judge.copy(step)
            case Delete():
                self.judge.delete(step)
            case Update():
                self.judge.update(step)
            case Merge():
                self.judge.merge(step)
        return canonical(self.judge.rows())

    def _alike(self, step: Step, got: Outcome, expected: Outcome) -> bool:
        if isinstance(got, Failed) and isinstance(expected, Failed):
            self.tally.failures_alike += 1
            return self._same(got, expected)
        if isinstance(expected, Failed) and _while_running(expected) and _may_be_skipped(step):
            self.tally.rows_skipped += 1
            return True
        return got == expected

    def _same(self, got: Failed, expected: Failed) -> bool:
        return got.ours or bool({*map(_family, got.conditions)} & {*map(_family, expected.conditions)})


def outcome_of(run: Callable[[], Any]) -> Outcome:
    """The rows that it gives, or the error that it ends in."""
    try:
        rows: list[Row] = run()
        return rows
    except Refusal as refusal:
        return Failed(refusal.conditions, str(refusal))
    except LakeproofError as error:
        return Failed((), str(error), ours=True)
    except PySparkException as error:
        return Failed((error.getCondition() or type(error).__name__,), str(error).split("\n", 1)[0][:300])
    except Py4JError as error:
        told = str(getattr(error, "java_exception", error)).split("\n", 1)[0]
        return Failed((f"raw {type(error).__name__}",), told[:300])
    except (AttributeError, ValueError, TypeError, KeyError, IndexError, AssertionError, NotImplementedError) as error:
        return Failed((f"raw {type(error).__name__}",), str(error)[:300])


# A value that no cast can store is refused by the cast's own check or by that of the table, whichever comes first.
_FAMILIES = ("DATATYPE_MISMATCH.CAST_WITH", "INCOMPATIBLE_DATA_FOR_TABLE")


def _family(condition: str) -> str:
    return _FAMILIES[-1] if condition.startswith(_FAMILIES) else condition


def _is_beyond_metadata(got: Outcome) -> bool:
    """A partition of an instant after the year 9999 cannot be written down; that is refused in a sentence."""
    return isinstance(got, Failed) and got.ours and "beyond what the table's metadata can hold" in got.message


RUNNING = ("CAST_", "DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "INVALID_ARRAY_INDEX")


def _while_running(failed: Failed) -> bool:
    return any(one.startswith((*RUNNING, "REMAINDER_BY_ZERO", "DATETIME_OVERFLOW")) for one in failed.conditions)


_SAME_BRANCHES = re.compile(r"case when .* then (true|false|null) else \1 end")
"""Spark never computes the condition of such a CASE, but for local rows, which it reads before it simplifies."""


def _may_be_skipped(step: Step) -> bool:
    """Whether a part of the predicate (or another clause) may spare a row the part that fails on it."""
    if isinstance(step, Merge):
        return True
    if isinstance(step, Read) and " where " in step.text.replace(" where {p}", ""):
        return True
    predicate = getattr(step, "predicate", None)
    if predicate is None:
        return False
    text = said(predicate)
    return may_skip_rows(predicate) or " and " in text or _SAME_BRANCHES.search(text) is not None


def told(difference: Difference) -> str:
    """Everything that is needed to see the difference again."""
    episode, end = difference.episode, difference.at if difference.at >= 0 else len(difference.episode.steps)
    lines = [f"seed {episode.seed}, ansi {episode.ansi}, time zone {episode.time_zone}"]
    lines += [f"  {managed(step, 't').text}" for step in episode.steps[:end] if not isinstance(step, Read)]
    if difference.at >= 0:
        shown = managed(episode.steps[difference.at], "t")
        lines.append(f"  {shown.text} {shown.arguments or ''}")
    else:
        lines.append(f"  {difference.statement.text}")
    got, expected = difference.got, difference.expected
    if isinstance(got, Failed) or isinstance(expected, Failed):
        return "\n".join([*lines, f"  got       {got}", f"  expected  {expected}"])
    more, less = [row for row in got if row not in expected], [row for row in expected if row not in got]
    return "\n".join(
        [*lines, f"  got {len(got)} rows, too many {more}", f"  expected {len(expected)} rows, missing {less}"]
    )
