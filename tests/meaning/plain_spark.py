"""The judge: what a statement means, computed by plain Spark from the same rows.

The rows are kept as local data under a temporary view. A DELETE leaves the rows that `select … where` does not show; an
UPDATE writes what INSERT would store in a Parquet table of the same columns; a MERGE is one join per clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from column_kinds import FIELDS, Column
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from random_predicates import said
from steps import Alter, Assignment, Clause, Copy, Create, Delete, Insert, Merge, Read, Update
from wording import inlined, values, where

RID = "__rid"
_RULES = "org.apache.spark.sql.catalyst.optimizer."
_OF_LOCAL_ROWS = (f"{_RULES}ConvertToLocalRelation", f"{_RULES}PropagateEmptyRelation")
_numbers = count(1)


class Refusal(Exception):
    """The statement must fail with one of these conditions (of Spark's)."""

    def __init__(self, *conditions: str) -> None:
        super().__init__(", ".join(conditions))
        self.conditions = conditions


class Plain:
    """The rows of one table in plain Spark."""

    def __init__(self, spark: SparkSession, made: Create) -> None:
        self.spark, self.columns, self.view = spark, made.columns, f"plain_{next(_numbers)}"
        self._sink, self._sinks = "", list[str]()
        self._now: DataFrame | None = None
        self._before: DataFrame | None = None
        self._settle(spark.sql(f"select {self._nothing()} where false"))

    def _nothing(self) -> str:
        return ", ".join(f"cast(null as {column.of.type}) as {column.sql}" for column in self.columns)

    def _names(self) -> str:
        return ", ".join(column.sql for column in self.columns)

    def rows(self) -> DataFrame:
        """All rows."""
        return self.spark.sql(f"select {self._names()} from {self.view}")

    def close(self) -> None:
        """Nothing is left of it."""
        self.spark.catalog.dropTempView(self.view)
        for sink in self._sinks:
            self.spark.sql(f"drop table if exists {sink}")

    def undo(self) -> None:
        """The rows are as they were before the last statement."""
        assert self._before is not None
        self._now = self._before
        self._now.createOrReplaceTempView(self.view)

    @contextmanager
    def eager(self) -> Iterator[None]:
        """Inside, Spark treats the local rows like those of a file: constants are computed before any row is."""
        self.spark.conf.set("spark.sql.optimizer.excludedRules", ", ".join(_OF_LOCAL_ROWS))
        try:
            yield
        finally:
            self.spark.conf.unset("spark.sql.optimizer.excludedRules")

    # ---- statements

    def read(self, step: Read) -> DataFrame:
        """The result of a query."""
        alias = f" {step.names.alias}" if step.names.alias else ""
        text = step.text.replace("from {t}", f"from {{t}}{alias}", 1).replace("{p}", said(step.predicate))
        text = inlined(text, self.view, step.names, step.parameters)
        if "* from" in text:  # the number of a row is nobody's column
            every = ", ".join(f"{step.names.alias or self.view}.{column.sql}" for column in self.columns)
            text = text.replace(f"{step.names.alias or self.view}.* from", f"{every} from")
        return self.spark.sql(text)

    def insert(self, step: Insert) -> None:
        """More rows."""
        named = step.named or self.columns
        now = {column.name: column for column in self.columns}
        rows = [[_value(text, now[one.name]) for text, one in zip(row, named, strict=True)] for row in step.rows]
        given = {column.name for column in named}
        chosen = ", ".join(c.sql if c.name in given else f"{_value('default', c)} as {c.sql}" for c in self.columns)
        text = f"select {chosen} from values {values(rows)} as v({', '.join(column.sql for column in named)})"
        self._settle(self.rows().union(self._stored(text)))

    def copy(self, step: Copy) -> None:
        """The chosen rows once more."""
        text = f"select {self._names()} from {self.view} {step.names.alias}{where(step.predicate)}"
        self._settle(self.rows().union(self.spark.sql(inlined(text, self.view, step.names, step.parameters))))

    def alter(self, step: Alter) -> None:
        """The same rows under other columns."""
        pairs = zip(step.values, step.columns, strict=True)
        chosen = ", ".join(f"{value} as {column.sql}" for value, column in pairs)
        rows = self.spark.sql(f"select {chosen} from {self.view}")
        self.columns = step.columns
        self._sink = ""  # what is stored next is stored into a table of the new columns
        self._settle(rows)

    def delete(self, step: Delete) -> None:
        """The rows that the predicate does not choose."""
        gone = self._chosen(step)
        self._settle(self._without(gone))

    def update(self, step: Update) -> None:
        """The chosen rows with their new values, as INSERT would store them."""
        self._refuse_contradictions(step)
        chosen = self._projected(step.assignments, step.names.alias or self.view)
        text = f"select {chosen} from {self.view} {step.names.alias}{where(step.predicate)}"
        new = self._stored(inlined(text, self.view, step.names, step.parameters))
        gone = self._chosen(Delete(step.predicate, step.parameters, step.names))
        self._settle(self._without(gone).union(new))

    def _refuse_contradictions(self, step: Update) -> None:
        """Of a statement with two mistakes, one in its condition, either may be told."""
        try:
            _refuse_contradictions(step.assignments)
        except Refusal as refusal:
            try:
                self._chosen(Delete(step.predicate, step.parameters, step.names))
            except PySparkException as error:
                raise Refusal(*refusal.conditions, error.getCondition() or type(error).__name__) from None
            raise

    def merge(self, step: Merge) -> None:
        """Each kind of pair by a join of its own, each clause by what the clauses before it left."""
        source = f"{step.source.replace('{t}', self.view)} s"
        target = f"{self.view} t"
        forms = {
            "matched": f"from {target} join {source} on {step.on}",
            "not matched": f"from {source} left anti join {target} on {step.on}",
            "not matched by source": f"from {target} left anti join {source} on {step.on}",
        }
        acting = [
            _Acting(clause, forms[clause.when], _earlier(step.clauses, at)) for at, clause in enumerate(step.clauses)
        ]
        new = _each(acting, lambda one: self._new_rows(one, step))
        gone = [_places(one) for one in acting if one.clause.action != "insert"]
        found = [int(row[0]) for row in self.spark.sql(" union all ".join(gone)).collect()] if gone else []
        self._refuse_ambiguous(step, forms["matched"], [each for each in new if each is not None])
        rows = self._without(found)
        for each in new:
            rows = rows.union(each) if each is not None else rows
        self._settle(rows)

    def _new_rows(self, one: _Acting, step: Merge) -> DataFrame | None:
        _refuse_contradictions(one.clause.assignments)
        if one.clause.action == "delete":
            self.spark.sql(_places(one))  # its condition may be a mistake, of which it is one of several
            return None
        return self._stored(self._clause_rows(one, step))

    def _clause_rows(self, one: _Acting, step: Merge) -> str:
        if not one.clause.assignments:
            chosen = ", ".join(f"s.{column.sql} as {column.sql}" for column in self.columns)
        elif one.clause.action == "update":
            chosen = self._projected(one.clause.assignments, "t")
        else:
            given = {each.column.name: each.value for each in one.clause.assignments}
            chosen = ", ".join(f"{_value(given.get(c.name, 'default'), c)} as {c.sql}" for c in self.columns)
        return f"select {chosen} {one.form} where {one.chosen}"

    def _refuse_ambiguous(self, step: Merge, form: str, new: Sequence[DataFrame]) -> None:
        """Spark's rule: a row that two source rows match is an error, unless all that can happen is that it goes.

        Where a new value cannot be stored either, that may be told instead.
        """
        matched = [clause for clause in step.clauses if clause.when == "matched"]
        harmless = len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None
        if not matched or harmless:
            return
        twice = self.spark.sql(f"select t.{RID} {form} group by t.{RID} having count(*) > 1").collect()
        if twice:
            raise Refusal("MERGE_CARDINALITY_VIOLATION", *(one for rows in new for one in _failing(rows)))

    # ---- parts

    def _projected(self, assignments: Sequence[Assignment], name: str) -> str:
        """Every column of a changed row."""
        given: dict[str, list[Assignment]] = {}
        for one in assignments:
            given.setdefault(one.column.name, []).append(one)
        return ", ".join(
            f"{_new_value(column, given.get(column.name, []), f'{name}.{column.sql}')} as {column.sql}"
            for column in self.columns
        )

    def _chosen(self, step: Delete) -> list[int]:
        text = f"select {RID} from {self.view} {step.names.alias}{where(step.predicate)}"
        return [int(row[0]) for row in self.spark.sql(inlined(text, self.view, step.names, step.parameters)).collect()]

    def _without(self, gone: Sequence[int]) -> DataFrame:
        kept = f" where {RID} not in ({', '.join(map(str, gone))})" if gone else ""
        return self.spark.sql(f"select {self._names()} from {self.view}{kept}")

    def _stored(self, query: str) -> DataFrame:
        """The rows of a query as an INSERT into a Parquet table of these columns would store them."""
        session, sink = self.spark._jsparkSession, self._current_sink()
        self._activate()  # the parser too reads the settings of the active session
        plan = session.sessionState().sqlParser().parsePlan(f"insert into {sink} by name {query}")
        analyzed = session.sessionState().executePlan(plan, self._mode()).analyzed()
        session.sessionState().analyzer().checkAnalysis(analyzed)
        rows = DataFrame(self._datasets().ofRows(session, analyzed.query()), self.spark)
        required = [column for column in self.columns if column.required]
        if required and rows.filter(" or ".join(f"{column.sql} is null" for column in required)).take(1):
            raise Refusal("NOT_NULL_ASSERT_VIOLATION", "CAST_INVALID_INPUT")
        return rows

    def _current_sink(self) -> str:
        if not self._sink:
            self._sink = f"{self.view}_sink_{len(self._sinks)}"
            listed = ", ".join(f"{column.sql} {column.of.type}" for column in self.columns)
            self.spark.sql(f"create table {self._sink} ({listed}) using parquet")
            self._sinks.append(self._sink)
        return self._sink

    def _settle(self, rows: DataFrame) -> None:
        """The rows are computed now and kept as local data."""
        jvm, numbered = self.spark._jvm, rows.selectExpr("*", f"monotonically_increasing_id() as {RID}")
        execution = numbered._jdf.queryExecution()
        data = (
            getattr(jvm.scala.collection.immutable, "ArraySeq$")
            .__getattr__("MODULE$")
            .unsafeWrapArray(execution.executedPlan().executeCollect())
        )
        local = "org.apache.spark.sql.catalyst.plans.logical.LocalRelation"
        relation = getattr(jvm, local)(execution.analyzed().output(), data, False, _none(jvm))
        fresh = DataFrame(self._datasets().ofRows(self.spark._jsparkSession, relation.newInstance()), self.spark)
        fresh.createOrReplaceTempView(self.view)
        self._before, self._now = self._now, fresh

    def _datasets(self) -> Any:
        return getattr(self.spark._jvm, "org.apache.spark.sql.classic.Dataset")

    def _mode(self) -> Any:
        modes = getattr(self.spark._jvm, "org.apache.spark.sql.execution.CommandExecutionMode$")
        return getattr(modes, "MODULE$").SKIP()

    def _activate(self) -> None:
        sessions = getattr(self.spark._jvm, "org.apache.spark.sql.classic.SparkSession")
        sessions.setActiveSession(self.spark._jsparkSession)


class _Acting(NamedTuple):
    """A clause, where its pairs come from, and the conditions of the clauses before it."""

    clause: Clause
    form: str
    earlier: tuple[str, ...]

    @property
    def chosen(self) -> str:
        """True for the pairs that this clause acts on; a condition that is a bare null is Spark's to take, in MERGE."""
        own = [] if self.clause.condition is None else [f"({said(self.clause.condition)})"]
        return " and ".join([*own, *(f"not coalesce({one}, false)" for one in self.earlier), "true"])


def _places(one: _Acting) -> str:
    return f"select t.{RID} {one.form} where {one.chosen}"


def _earlier(clauses: Sequence[Clause], at: int) -> tuple[str, ...]:
    when = clauses[at].when
    return tuple(
        "true" if clause.condition is None else f"({said(clause.condition)})"
        for clause in clauses[:at]
        if clause.when == when
    )


def _new_value(column: Column, given: Sequence[Assignment], old: str) -> str:
    if not given:
        return old
    if not given[0].path:
        return _value(given[0].value, column)
    return _struct(column.kind, {one.path: one.value for one in given}, old)


def _struct(kind: str, given: dict[str, str], old: str) -> str:
    """A struct with some fields replaced: a null struct becomes one of nulls, as in Spark's UPDATE."""
    parts: dict[str, str] = {}
    for path, _ in FIELDS[kind]:
        head, _, tail = path.partition(".")
        if not tail:
            parts[head] = given.get(path, f"{old}.{path}")
            continue
        inner = [one for one, _ in FIELDS[kind] if one.startswith(f"{head}.")]
        if any(one in given for one in inner):
            fields = ", ".join(f"'{one.partition('.')[2]}', {given.get(one, f'{old}.{one}')}" for one in inner)
            parts[head] = f"named_struct({fields})"
        else:
            parts[head] = f"{old}.{head}"
    return f"named_struct({', '.join(f'{name!r}, {value}' for name, value in parts.items())})"


def _value(text: str, column: Column) -> str:
    return (column.default or "null") if text == "default" else text


def _each(acting: Sequence[_Acting], rows_of: Callable[[_Acting], DataFrame | None]) -> list[DataFrame | None]:
    """What each clause makes; of mistakes in several clauses, any may be told."""
    made: list[DataFrame | None] = []
    errors: list[Refusal | PySparkException] = []
    for one in acting:
        try:
            made.append(rows_of(one))
        except (Refusal, PySparkException) as error:
            errors += [error, *_others(one, rows_of)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise Refusal(*(condition for error in errors for condition in _conditions(error)))
    return made


def _others(one: _Acting, rows_of: Callable[[_Acting], DataFrame | None]) -> Iterator[Refusal | PySparkException]:
    """What is wrong with a clause besides its condition, which its values hide, or are hidden by."""
    if one.clause.condition is None:
        return
    try:
        rows_of(one._replace(clause=one.clause._replace(condition=None)))
    except (Refusal, PySparkException) as error:
        yield error


def _failing(rows: DataFrame) -> tuple[str, ...]:
    try:
        rows.collect()
    except PySparkException as error:
        return _conditions(error)
    return ()


def _conditions(error: Refusal | PySparkException) -> tuple[str, ...]:
    if isinstance(error, Refusal):
        return tuple(error.conditions)
    return (error.getCondition() or type(error).__name__,)


def _refuse_contradictions(assignments: Sequence[Assignment]) -> None:
    targets = [(one.column.name, one.path) for one in assignments]
    for name, path in targets:
        clash = [other for its, other in targets if its == name]
        if len(clash) > 1 and ("" in clash or clash.count(path) > 1):
            raise Refusal("DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS", "INCOMPATIBLE_DATA_FOR_TABLE")


def _none(jvm: Any) -> Any:
    return getattr(getattr(jvm, "scala.None$"), "MODULE$")
