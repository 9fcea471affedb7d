"""UPDATE, DELETE and MERGE as Spark itself understands them: its parser, its analyzer, no text of ours.

A scan of the target takes the target's place in the parsed plan, and the session's analyzer resolves the whole
statement: names, types, subqueries, CTEs, parameters, `*`. What comes out are Catalyst expressions on that scan, which
become Columns as they are. A parsed plan never changes, so that a command that runs again is analysed again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from lakeproof.commit import Command
from lakeproof.errors import InvalidInput
from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.default_values import CURRENT
from lakeproof.spark.jvm.gateway import Gateway, items_of, texts_of
from lakeproof.sql.column_aliases import with_aliases_inside

_COMMANDS = {"DeleteFromTable": Command.DELETE, "UpdateTable": Command.UPDATE, "MergeIntoTable": Command.MERGE}
_INSERTS = ("InsertIntoStatement", "OverwriteByExpression")  # the second: INSERT INTO ... REPLACE WHERE
_NOT_REPEATABLE = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
Arguments = Mapping[str, Any] | Sequence[Any]


class ParsedCommand(NamedTuple):
    """A row-level command as Spark parsed it; `target` are the parts of its table's name as they were quoted."""

    command: Command
    plan: Any
    target: tuple[str, ...]


class ParsedInsert(NamedTuple):
    """An INSERT as Spark parsed it; `target` are the parts of its table's name."""

    plan: Any
    target: tuple[str, ...]


class Target(NamedTuple):
    """What stands for the target: a scan, and the table's columns, which are the scan's first ones.

    Columns behind those (the place of a row) are hidden from the statement, but known to its expressions.
    """

    name: tuple[str, ...]
    rows: DataFrame
    columns: spark.StructType


class ResolvedClause(NamedTuple):
    """A WHEN clause: `values` has an expression for each column of the table; `None`: the clause deletes."""

    when: str
    condition: Column | None
    values: tuple[Column, ...] | None


class ResolvedCommand(NamedTuple):
    """A command resolved on a scan: WHERE or ON (`None`: every row), the values of an UPDATE, the parts of a MERGE."""

    condition: Column | None = None
    values: tuple[Column, ...] = ()
    source: DataFrame | None = None
    clauses: tuple[ResolvedClause, ...] = ()
    said: Any = None  # the WHERE of a DELETE as Catalyst holds it


class Analyzer:
    """The parser and the analyzer of one session."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        state = gateway.session.sessionState()
        self.parser, self.analyzer = state.sqlParser(), state.analyzer()

    # ---- text

    def parsed(self, text: str, arguments: Arguments | None = None) -> Any:
        """Spark's own parse, with parameters; a MERGE source may name its columns, which Spark's grammar refuses."""
        self.activate()
        try:
            return self._parsed(text, arguments)
        except ParseException as error:
            moved = with_aliases_inside(text) if error.getCondition() == "COLUMN_ALIASES_NOT_ALLOWED" else None
            if moved is None:
                raise
            return self._parsed(moved, arguments)

    def _parsed(self, text: str, arguments: Arguments | None) -> Any:
        if not arguments:
            return self.parser.parsePlan(text)
        if isinstance(arguments, Mapping):
            values: Any = {name: self._argument(value) for name, value in arguments.items()}
            named = self.gateway.named(spark41.NAMED_PARAMETER_CONTEXT)
            return self.parser.parsePlanWithParameters(text, named(self.gateway.jvm.PythonUtils.toScalaMap(values)))
        values = self.gateway.sequence(self._argument(value) for value in arguments)
        listed = self.gateway.named(spark41.POSITIONAL_PARAMETER_CONTEXT)
        return self.parser.parsePlanWithParameters(text, listed(values))

    def _argument(self, value: Any) -> Any:
        return self.gateway.session.expression(spark41.java_column(F.lit(value)))

    def activate(self) -> None:
        """Parser and analyzer read the settings of the thread's active session.

        A Python thread that never ran a query has none; Spark would then ask its own catalog instead of ours.
        """
        self.gateway.static(spark41.SPARK_SESSION, "setActiveSession")(self.gateway.session)

    # ---- parsed plans

    def command_of(self, plan: Any) -> ParsedCommand | ParsedInsert | None:
        """The row-level command, or the INSERT, that a parsed plan is (below its CTEs); `None`: it is neither."""
        below = plan
        while (kind := below.nodeName()) == "UnresolvedWith":
            below = below.child()
        if kind in _INSERTS:
            parts = self._name_of(below.table())
            return None if parts is None else ParsedInsert(plan, parts)
        parts = self._name_of(below.children().apply(0)) if kind in _COMMANDS else None
        return None if parts is None else ParsedCommand(_COMMANDS[kind], plan, parts)

    def _name_of(self, relation: Any) -> tuple[str, ...] | None:
        while (kind := relation.nodeName()) == "SubqueryAlias":
            relation = relation.child()
        return tuple(texts_of(relation.multipartIdentifier())) if kind == "UnresolvedRelation" else None

    # ---- meaning

    def meaning(self, parsed: ParsedCommand, target: Target) -> ResolvedCommand:
        """The command's conditions, values and source, resolved on the target's scan; or Spark's own error."""
        self.activate()
        analyzed = self.analyzer.execute(self._with_target(parsed.plan, target))
        command = analyzed
        while command.nodeName() == "WithCTE":
            command = command.plan()
        self._check(analyzed, command, parsed.command)
        if parsed.command is Command.DELETE:
            said = command.condition()
            return ResolvedCommand(self.column(said), said=said)
        attributes = self._attributes(target)
        if parsed.command is Command.UPDATE:
            values = self._updated(attributes, command.assignments(), star=False)
            return ResolvedCommand(self._optional(command.condition()), values)
        return ResolvedCommand(
            self.column(command.mergeCondition()),
            source=self.gateway.dataframe(command.sourceTable()),
            clauses=tuple(self._clauses(command, attributes)),
        )

    def new_columns(self, parsed: ParsedCommand) -> spark.StructType | None:
        """The columns of its source that a MERGE WITH SCHEMA EVOLUTION writes; `None`: it is no such command."""
        command = parsed.plan.child() if parsed.plan.nodeName() == "UnresolvedWith" else parsed.plan
        if parsed.command is not Command.MERGE or not command.withSchemaEvolution():
            return None
        self.activate()
        source = command.sourceTable()
        plan = source if command is parsed.plan else parsed.plan.withNewChildren(self.gateway.one(source))
        columns = self.gateway.dataframe(self.analyzer.execute(plan)).schema.fields
        written = self._assigned(command)
        return spark.StructType([each for each in columns if written is None or each.name.lower() in written])

    def _assigned(self, command: Any) -> set[str] | None:
        """The columns that the clauses of a parsed MERGE assign by name; `None`: all that its source has."""
        found = set()
        for actions in (command.matchedActions(), command.notMatchedActions()):
            for action in items_of(actions):
                kind = action.getClass().getSimpleName()
                if kind in ("UpdateStarAction", "InsertStarAction"):
                    return None
                assigned = [] if kind == "DeleteAction" else items_of(action.assignments())
                found |= {texts_of(each.key().nameParts())[-1].lower() for each in assigned}
        return found

    def resolved(self, plan: Any) -> Any:
        """The command that a parsed plan is, resolved and checked; its query holds its CTEs."""
        self.activate()
        command = self._resolved(plan)
        # Spark loads a name once in an analysis, and gives a subquery the table that is to be written.
        reads_target = re.search(rf"RelationV2\[.*\] {re.escape(command.table().name())}\b", str(command.query()))
        return self._resolved(self._query_first(plan)) if reads_target else command

    def _resolved(self, plan: Any) -> Any:
        command = self.analyzer.execute(plan)
        self.analyzer.checkAnalysis(command)
        while command.nodeName() == "WithCTE":
            command = command.plan()
        return command

    def _query_first(self, plan: Any) -> Any:
        """An INSERT whose query was analysed by itself, where nothing knows yet that its target is to be written."""
        command = plan.child() if plan.nodeName() == "UnresolvedWith" else plan
        query = command.query() if command is plan else plan.withNewChildren(self.gateway.one(command.query()))
        return command.withNewChildren(self.gateway.one(self.analyzer.execute(query)))

    def column(self, expression: Any) -> Column:
        """A Catalyst expression as a Column."""
        return Column(self.gateway.static(spark41.EXPRESSION_UTILS, "column")(expression))

    def _optional(self, expression: Any) -> Column | None:
        return self.column(expression.get()) if expression.isDefined() else None

    def _with_target(self, plan: Any, target: Target) -> Any:
        """The plan with the scan for its target; there alone, so that subqueries on the table read it as others do."""
        if plan.nodeName() == "UnresolvedRelation":
            scan = spark41.execution_of(target.rows).analyzed()
            own = self._own_columns(target, scan)
            shown = self.gateway.module(spark41.PROJECT).apply(own, scan)
            return self.gateway.module(spark41.SUBQUERY_ALIAS).apply(self.gateway.sequence(target.name), shown)
        children = plan.children()
        return plan.withNewChildren(children.updated(0, self._with_target(children.apply(0), target)))

    def _check(self, analyzed: Any, command: Any, kind: Command) -> None:
        """Spark's own errors: unresolved and ambiguous names, wrong types, aggregates in WHERE.

        A command that Spark does not rewrite may not say rand() or uuid(). Ours becomes a Filter and a Project, which
        may: there what it says is checked in that shape.
        """
        try:
            self.analyzer.checkAnalysis(analyzed)
        except AnalysisException as error:
            if error.getCondition() != _NOT_REPEATABLE or kind is Command.MERGE:
                raise
            try:
                self.analyzer.checkAnalysis(self._as_query(command, kind))
            except AnalysisException:  # an aggregate beside rand(): Spark's first word about it is the better one
                raise error from None

    def _as_query(self, command: Any, kind: Command) -> Any:
        """DELETE as a Filter, UPDATE as a Project above one."""
        rows = command.children().apply(0)
        condition = command.condition() if kind is Command.DELETE else None
        if kind is Command.UPDATE and command.condition().isDefined():
            condition = command.condition().get()
        if condition is not None:
            rows = self.gateway.named(spark41.FILTER)(condition, rows)
        if kind is Command.DELETE:
            return rows
        values = [self._named(assignment.value()) for assignment in items_of(command.assignments())]
        return self.gateway.module(spark41.PROJECT).apply(self.gateway.sequence(values), rows)

    def _named(self, value: Any) -> Any:
        alias = self.gateway.module(spark41.ALIAS)
        return alias.apply(value, "value", *spark41.defaults(alias, "apply", range(3, 7), value, "value"))

    # ---- values

    def _attributes(self, target: Target) -> Any:
        """The columns of the scan as the table declares them: the scan itself calls every column nullable."""
        found = self._own_columns(target, spark41.execution_of(target.rows).analyzed())
        if all(_is_nullable(field) for field in target.columns.fields):
            return found
        declared = []
        for attribute, field in zip(items_of(found), target.columns.fields, strict=True):
            kind = self.gateway.java_schema(spark.StructType([field])).apply(0).dataType()
            declared.append(attribute.withDataType(kind).withNullability(field.nullable))
        return self.gateway.sequence(declared)

    def _own_columns(self, target: Target, scan: Any) -> Any:
        """The table's columns among those of its scan, with what DEFAULT means for them."""
        found = scan.output().take(len(target.columns.fields))
        defaults = [field.metadata.get(CURRENT) for field in target.columns.fields]
        if not any(defaults):
            return found
        kind = self.gateway.named(spark41.METADATA)
        pairs = zip(items_of(found), defaults, strict=True)
        return self.gateway.sequence(
            one if text is None else one.withMetadata(kind.fromJson(json.dumps({CURRENT: text}))) for one, text in pairs
        )

    def _clauses(self, command: Any, attributes: Any) -> Iterator[ResolvedClause]:
        groups = {
            MATCHED: command.matchedActions(),
            NOT_MATCHED: command.notMatchedActions(),
            NOT_MATCHED_BY_SOURCE: command.notMatchedBySourceActions(),
        }
        for when, actions in groups.items():
            for action in items_of(actions):
                _refuse_other_types(when, action.condition())
                yield ResolvedClause(when, self._optional(action.condition()), self._written(action, attributes))

    def _written(self, action: Any, attributes: Any) -> tuple[Column, ...] | None:
        kind = action.getClass().getSimpleName()
        if kind == "DeleteAction":
            return None
        if kind == "UpdateAction":
            return self._updated(attributes, action.assignments(), star=bool(action.fromStar()))
        bare = self._bare(action.assignments())
        return self._values(self._rules.alignInsertAssignments(attributes, bare, False))

    def _updated(self, attributes: Any, assignments: Any, *, star: bool) -> tuple[Column, ...]:
        bare = self._bare(assignments)
        return self._values(self._rules.alignUpdateAssignments(attributes, bare, star, False))

    @property
    def _rules(self) -> Any:
        """Spark's rules for values that are assigned to columns of a V2 table: types, structs, defaults, NOT NULL."""
        return self.gateway.module(spark41.ASSIGNMENT_UTILS)

    def _values(self, aligned: Any) -> tuple[Column, ...]:
        return tuple(self.column(assignment.value()) for assignment in items_of(aligned))

    def _bare(self, assignments: Any) -> Any:
        """The assignments without the casts that the analyzer put around their values.

        To a target that has no row-level operations of its own it casts anything to anything, without asking the
        store assignment policy; the rules that follow do ask.
        """
        kind = self.gateway.named(spark41.ASSIGNMENT)
        return self.gateway.sequence(kind(each.key(), self._uncast(each.value())) for each in items_of(assignments))

    def _uncast(self, value: Any) -> Any:
        tag = self.gateway.once("cast by insertion", lambda: self.gateway.module(spark41.CAST).BY_TABLE_INSERTION())
        if value.nodeName() == "Cast" and value.getTagValue(tag).isDefined():
            value = value.child()
        return value.child() if value.nodeName() == "AssertNotNull" else value


def _refuse_other_types(when: str, condition: Any) -> None:
    """Spark itself finds out while it runs; a bare null is never true, and allowed."""
    kind = condition.get().dataType().simpleString() if condition.isDefined() else "boolean"
    if kind not in ("boolean", "void"):
        raise InvalidInput(f"the condition {condition.get().sql()} of WHEN {when.upper()} is {kind}, not boolean")


def _is_nullable(field: spark.StructField) -> bool:
    return bool(field.nullable) and _nulls_inside(field.dataType)


def _nulls_inside(kind: spark.DataType) -> bool:
    if isinstance(kind, spark.StructType):
        return all(_is_nullable(field) for field in kind.fields)
    if isinstance(kind, spark.ArrayType):
        return bool(kind.containsNull) and _nulls_inside(kind.elementType)
    if isinstance(kind, spark.MapType):
        return bool(kind.valueContainsNull) and _nulls_inside(kind.keyType) and _nulls_inside(kind.valueType)
    return True
