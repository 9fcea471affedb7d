"""SQL commands on one table as `RowCommand` values: what a job means, for scenarios, models and proofs.

INSERT (VALUES, SELECT from the same table), UPDATE, DELETE (with EXISTS on the same table), MERGE, INSERT OVERWRITE and
CALL system.rewrite_data_files. What has no exact meaning here is refused with the reason, or, with a `Caution`, taken
as "it may be anything" and noted.
"""

from __future__ import annotations

from sqlglot import exp

from lakeproof.commit.change import Command
from lakeproof.commit.meaning import ANYTHING, Assignment, Exists, Merge, MergeClause, RowCommand, Select, Term
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, And, Compare, Expression, Opaque, Or, all_of, bound
from lakeproof.format import Row, Value
from lakeproof.sql.predicates import NOT_LITERAL, literal_value, parsed_expression, predicate


class Caution:
    """Collects what is taken as "it may be anything"."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say once what is treated cautiously."""
        if text not in self.notes:
            self.notes.append(text)


def row_command(
    text: str,
    columns: tuple[str, ...],
    *,
    place: str = "",
    caution: Caution | None = None,
    dynamic_overwrite: bool = False,
    partition_columns: tuple[str, ...] = (),
) -> RowCommand:
    """The command that the text stands for."""
    if text.strip().lower().startswith("call ") and "rewrite_data_files" in text.lower():
        return RowCommand(Command.REWRITE, text=text.strip())
    node = parsed_expression(text, place=place)
    try:
        command = _Reader(columns, caution).command(node)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=error.place or place, hint=error.hint) from None
    if command.command is Command.OVERWRITE and dynamic_overwrite and command.where == ALWAYS:
        command = command._replace(command=Command.OVERWRITE_PARTITIONS, partition_columns=partition_columns)
    return command._replace(text=text.strip())


class _Reader:
    """Reads one command on a table with these columns."""

    def __init__(self, columns: tuple[str, ...], caution: Caution | None) -> None:
        self.columns, self.caution = columns, caution
        self.table, self.source, self.alias = "", tuple[str, ...](), ""

    def command(self, node: exp.Expr) -> RowCommand:
        """The command of a whole statement."""
        target = node.this.this if isinstance(node.this, exp.Schema) else node.this
        self.table = target.name.lower() if isinstance(target, exp.Table) else ""
        if isinstance(node, exp.Insert):
            return self.insert(node)
        if isinstance(node, exp.Update):
            where, exists = self.where(node.args.get("where"))
            return RowCommand(Command.UPDATE, where, self.assignments(node.expressions), exists=exists)
        if isinstance(node, exp.Delete):
            where, exists = self.where(node.args.get("where"))
            return RowCommand(Command.DELETE, where, exists=exists)
        if isinstance(node, exp.Merge):
            return RowCommand(Command.MERGE, merge=self.merge(node))
        raise InvalidInput(
            f"{node.key.upper()} is not a command that changes rows",
            hint="use INSERT, UPDATE, DELETE, MERGE, INSERT OVERWRITE or CALL system.rewrite_data_files",
        )

    def unclear(self, problem: str, cautiously: str, hint: str = "") -> None:
        """Something has no exact meaning: refused, or noted and taken cautiously."""
        if self.caution is None:
            raise InvalidInput(problem, hint=hint)
        self.caution.note(cautiously)

    # ------------------------------------------------------------ INSERT

    def insert(self, node: exp.Insert) -> RowCommand:
        source = node.expression
        schema = isinstance(node.this, exp.Schema)
        named = tuple(column.name for column in node.this.expressions) if schema else self.columns
        fixed = _static_partition(node.args.get("partition") or node.this.args.get("partition"))
        kind = Command.OVERWRITE if node.args.get("overwrite") else Command.INSERT
        where = all_of(Compare(self.known(name), "=", value) for name, value in fixed.items())
        if isinstance(source, exp.Values):
            given = tuple(name for name in named if name not in fixed)
            return RowCommand(kind, where, rows=tuple(self.row(one, given, fixed) for one in source.expressions))
        if isinstance(source, exp.Select) and kind is Command.INSERT and self.is_own(source):
            select = self.select(source)
            if select is not None:
                return RowCommand(Command.INSERT_SELECT, select=select)
        text = source.sql(dialect="spark") if source is not None else "its source"
        self.unclear(
            "Only VALUES, or INSERT INTO … SELECT from the same table, has an exact meaning here",
            f"the rows of `{text}` are not known: one row with any values stands for them",
        )
        row = tuple(fixed.get(name, ANYTHING) for name in self.columns)
        return RowCommand(kind, where, rows=(row,))

    def row(self, node: exp.Expr, named: tuple[str, ...], fixed: dict[str, Value]) -> Row:
        values = [literal_value(one) for one in (node.expressions or [node])]
        if any(value is NOT_LITERAL for value in values):
            problem = f"VALUES may hold literals only, not {node.sql(dialect='spark')}"
            self.unclear(problem, f"a value in `{node.sql(dialect='spark')}` is not known: it may be any")
            values = [ANYTHING if value is NOT_LITERAL else value for value in values]
        if len(values) != len(named):
            raise InvalidInput(f"The table has {len(named)} columns to fill, VALUES gives {len(values)}")
        given = {**dict(zip(named, values, strict=True)), **fixed}
        for name in given:
            self.known(name)
        return tuple(given.get(name) for name in self.columns)

    def select(self, node: exp.Select) -> Select | None:
        where, exists = self.where(node.args.get("where"))
        if exists or node.args.get("joins") or node.args.get("group"):
            if self.caution is None:
                raise InvalidInput("INSERT … SELECT with a join, a grouping or a subquery has no exact meaning here")
            return None
        terms, aggregates = [], []
        for one in node.expressions:
            inner = one.this if isinstance(one, exp.Alias) else one
            name = _aggregate(inner)
            terms.append(Term() if name.startswith("count") else self.term(inner.this if name else inner))
            aggregates.append(name)
        return Select(where, tuple(terms), tuple(aggregates))

    # ------------------------------------------------------------ WHERE

    def where(self, node: exp.Expr | None) -> tuple[Expression, tuple[Exists, ...]]:
        if node is None:
            return ALWAYS, ()
        parts, guards = [], []
        for one in _conjuncts(node.this):
            negative = isinstance(one, exp.Not) and isinstance(one.this, exp.Exists)
            inner = one.this if negative else one
            query = one.find(exp.Select)
            if query is None:
                parts.append(self.condition(one))
            elif isinstance(inner, exp.Exists) and self.is_own(query):
                where, nested = self.where(query.args.get("where"))
                if nested:
                    raise InvalidInput("A subquery inside a subquery has no exact meaning here")
                guards.append(Exists(where, negative))
            else:
                text = one.sql(dialect="spark")
                problem = "Only [NOT] EXISTS (SELECT … from the same table) is understood as a subquery here"
                self.unclear(problem, f"`{text}` reads something else: each row may match it or not")
                parts.append(Opaque(text))
        return all_of(parts), tuple(guards)

    def condition(self, node: exp.Expr) -> Expression:
        found = predicate(node)
        for text in opaque_parts(found):
            self.unclear(f"{text} has no exact meaning here", f"`{text}` is not known: each row may match it or not")
        return bound(found, (*self.columns, *self.source), case_sensitive=False)

    def is_own(self, query: exp.Expr) -> bool:
        """Whether a subquery reads the command's own table and no other."""
        tables = [table.name.lower() for table in query.find_all(exp.Table)]
        return bool(tables) and all(name == self.table for name in tables)

    # ------------------------------------------------------------ values

    def assignments(self, nodes: list[exp.Expr]) -> tuple[Assignment, ...]:
        made = []
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                raise InvalidInput(f"{node.sql(dialect='spark')} is not an assignment")
            made.append(Assignment(self.known(node.this.name), self.term(node.expression)))
        return tuple(made)

    def term(self, node: exp.Expr) -> Term:
        if isinstance(node, exp.Paren):
            return self.term(node.this)
        value = literal_value(node)
        if value is not NOT_LITERAL:
            return Term(value)
        if isinstance(node, exp.Column):
            of_source = bool(self.source) and (node.table.lower() == self.alias or node.name not in self.columns)
            return Term(column=self.known(node.name, self.source if of_source else self.columns), source=of_source)
        if isinstance(node, exp.Add | exp.Sub) and isinstance(plus := literal_value(node.expression), int):
            base = self.term(node.this)
            if base.column:
                return base._replace(plus=base.plus + (plus if isinstance(node, exp.Add) else -plus))
        text = node.sql(dialect="spark")
        hint = "use a literal, a column, or a column plus a number"
        self.unclear(f"{text} has no exact meaning here", f"the value of `{text}` is not known: it may be any", hint)
        return Term(ANYTHING)

    def known(self, name: str, columns: tuple[str, ...] | None = None) -> str:
        there = {each.lower(): each for each in columns or self.columns}
        if name.lower() not in there:
            raise InvalidInput(f"There is no column {name!r}", hint=f"the columns are {', '.join(there.values())}")
        return there[name.lower()]

    # ------------------------------------------------------------ MERGE

    def merge(self, node: exp.Merge) -> Merge:
        using = node.args["using"]
        values = using.find(exp.Values)
        alias = using.args.get("alias") or (values.args.get("alias") if values else None)
        self.alias = (alias.name if alias is not None else using.name).lower()
        rows: tuple[Row, ...] = ()
        if values is not None and alias is not None and alias.columns:
            self.source = tuple(column.name for column in alias.columns)
            rows = tuple(tuple(literal_value(v) for v in (row.expressions or [row])) for row in values.expressions)
        else:
            problem = "MERGE needs USING (VALUES …) AS s(column, …) here"
            text = using.sql(dialect="spark")
            self.unclear(
                problem,
                f"the rows of the MERGE's source `{text}` are not known: it may be any one row",
                "name its columns",
            )
            self.source = self.columns
        on = tuple(self.key(one) for one in _conjuncts(node.args["on"]))
        return Merge(self.source, rows, on, tuple(self.clause(one) for one in node.args["whens"].expressions))

    def key(self, node: exp.Expr) -> tuple[str, str]:
        if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            flipped = node.left.table.lower() == self.alias
            left, right = (node.right, node.left) if flipped else (node.left, node.right)
            return self.known(left.name), self.known(right.name, self.source)
        raise InvalidInput(f"MERGE … ON {node.sql(dialect='spark')}: only equal keys have an exact meaning here")

    def clause(self, node: exp.When) -> MergeClause:
        unmatched = "not matched by source" if node.args.get("source") else "not matched"
        when = "matched" if node.args["matched"] else unmatched
        condition = self.condition(node.args["condition"]) if node.args.get("condition") else ALWAYS
        then = node.args["then"]
        if isinstance(then, exp.Update):
            star = any(isinstance(one, exp.Star) for one in then.expressions) or not then.expressions
            every = tuple(Assignment(n, Term(column=n, source=True)) for n in self.source if n in self.columns)
            return MergeClause(when, "update", condition, every if star else self.assignments(then.expressions))
        if isinstance(then, exp.Insert):
            return MergeClause(when, "insert", condition, values=self.insert_values(then))
        return MergeClause(when, "delete", condition)

    def insert_values(self, node: exp.Insert) -> tuple[Term, ...]:
        if isinstance(node.this, exp.Star) or node.expression is None:
            given = {name: Term(column=name, source=True) for name in self.source}
        else:
            targets = [self.known(one.name) for one in node.this.expressions]
            terms = [self.term(one) for one in node.expression.expressions]
            of_source = (term._replace(source=term.column is not None) for term in terms)
            given = dict(zip(targets, of_source, strict=True))
        return tuple(given.get(name, Term()) for name in self.columns)


def opaque_parts(expression: Expression) -> list[str]:
    """The parts of a predicate that cannot be decided."""
    if isinstance(expression, And | Or):
        return [text for part in expression.parts for text in opaque_parts(part)]
    return [expression.text] if isinstance(expression, Opaque) else []


def _static_partition(node: exp.Expr | None) -> dict[str, Value]:
    equal = [one for one in (node.expressions if node else ()) if isinstance(one, exp.EQ)]
    return {one.this.name: literal_value(one.expression) for one in equal}


def _aggregate(node: exp.Expr) -> str:
    """The aggregate that a selected expression is, as `Select` names it; nothing for a plain value."""
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Count) and node.is_type(*exp.DataType.TEXT_TYPES):
        return "count as text"
    return "count" if isinstance(node, exp.Count) else "sum" if isinstance(node, exp.Sum) else ""


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]
