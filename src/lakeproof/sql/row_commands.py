"""SQL commands on one table as `RowCommand` values: what a job means, for scenarios, models and proofs.

INSERT (VALUES, SELECT from the same table), UPDATE, DELETE (with EXISTS on the same table), MERGE from VALUES,
INSERT OVERWRITE and CALL system.rewrite_data_files. What has no exact meaning here is refused with the reason.
"""

from __future__ import annotations

from sqlglot import exp

from lakeproof.commit.change import Command
from lakeproof.commit.row_command import Assignment, Exists, Merge, MergeClause, RowCommand, Select, Term
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Compare, Expression, all_of
from lakeproof.format import Row, Value
from lakeproof.sql.predicates import NOT_LITERAL, literal_value, parsed_expression, predicate


def row_command(
    text: str,
    columns: tuple[str, ...],
    *,
    place: str = "",
    dynamic_overwrite: bool = False,
    partition_columns: tuple[str, ...] = (),
) -> RowCommand:
    """The command that the text stands for."""
    if text.strip().lower().startswith("call ") and "rewrite_data_files" in text.lower():
        return RowCommand(Command.REWRITE, text=text.strip())
    node = parsed_expression(text, place=place)
    try:
        command = _command(node, columns)
    except InvalidInput as error:
        raise InvalidInput(error.message, place=error.place or place, hint=error.hint) from None
    if command.command is Command.OVERWRITE and dynamic_overwrite and command.where == ALWAYS:
        command = command._replace(command=Command.OVERWRITE_PARTITIONS, partition_columns=partition_columns)
    return command._replace(text=text.strip())


def _command(node: exp.Expr, columns: tuple[str, ...]) -> RowCommand:
    if isinstance(node, exp.Insert):
        return _insert(node, columns)
    if isinstance(node, exp.Update):
        where, exists = _where(node.args.get("where"), columns)
        return RowCommand(Command.UPDATE, where, _assignments(node.expressions, columns), exists=exists)
    if isinstance(node, exp.Delete):
        where, exists = _where(node.args.get("where"), columns)
        return RowCommand(Command.DELETE, where, exists=exists)
    if isinstance(node, exp.Merge):
        return RowCommand(Command.MERGE, merge=_merge(node, columns))
    raise InvalidInput(
        f"{node.key.upper()} is not a command that changes rows",
        hint="use INSERT, UPDATE, DELETE, MERGE, INSERT OVERWRITE or CALL system.rewrite_data_files",
    )


def _insert(node: exp.Insert, columns: tuple[str, ...]) -> RowCommand:
    source = node.expression
    named = tuple(column.name for column in node.this.expressions) if isinstance(node.this, exp.Schema) else columns
    fixed = _static_partition(node.args.get("partition") or node.this.args.get("partition"))
    kind = Command.OVERWRITE if node.args.get("overwrite") else Command.INSERT
    where = all_of(Compare(name, "=", value) for name, value in fixed.items())
    if isinstance(source, exp.Values):
        given = tuple(name for name in named if name not in fixed)
        rows = tuple(_row(tuple_, given, fixed, columns) for tuple_ in source.expressions)
        return RowCommand(kind, where, rows=rows)
    if isinstance(source, exp.Select) and kind is Command.INSERT:
        return RowCommand(Command.INSERT_SELECT, select=_select(source, columns))
    raise InvalidInput("Only VALUES, or INSERT INTO … SELECT from the same table, has an exact meaning here")


def _static_partition(node: exp.Expr | None) -> dict[str, Value]:
    fixed: dict[str, Value] = {}
    for one in node.expressions if node else ():
        if isinstance(one, exp.EQ):
            fixed[one.this.name] = literal_value(one.expression)
    return fixed


def _row(node: exp.Expr, named: tuple[str, ...], fixed: dict[str, Value], columns: tuple[str, ...]) -> Row:
    values = [literal_value(one) for one in (node.expressions or [node])]
    if NOT_LITERAL in [value for value in values if isinstance(value, type(NOT_LITERAL))]:
        raise InvalidInput(f"VALUES may hold literals only, not {node.sql(dialect='spark')}")
    if len(values) != len(named):
        raise InvalidInput(f"The table has {len(named)} columns to fill, VALUES gives {len(values)}")
    given = {**dict(zip(named, values, strict=True)), **fixed}
    for name in given:
        _known(name, columns)
    return tuple(given.get(name) for name in columns)


def _select(node: exp.Select, columns: tuple[str, ...]) -> Select:
    where, exists = _where(node.args.get("where"), columns)
    if exists or node.args.get("joins") or node.args.get("group"):
        raise InvalidInput("INSERT … SELECT with a join, a grouping or a subquery has no exact meaning here")
    terms, aggregates = [], []
    for one in node.expressions:
        inner = one.this if isinstance(one, exp.Alias) else one
        if isinstance(inner, exp.Count):
            terms.append(Term())
            aggregates.append("count")
        elif isinstance(inner, exp.Sum):
            terms.append(_term(inner.this, columns))
            aggregates.append("sum")
        else:
            terms.append(_term(inner, columns))
            aggregates.append("")
    return Select(where, tuple(terms), tuple(aggregates))


def _where(node: exp.Expr | None, columns: tuple[str, ...]) -> tuple[Expression, tuple[Exists, ...]]:
    if node is None:
        return ALWAYS, ()
    parts, guards = [], []
    for one in _conjuncts(node.this):
        negative = isinstance(one, exp.Not) and isinstance(one.this, exp.Exists)
        inner = one.this if negative else one
        if isinstance(inner, exp.Exists):
            query = inner.find(exp.Select)
            where, nested = _where(query.args.get("where") if query else None, columns)
            if nested:
                raise InvalidInput("A subquery inside a subquery has no exact meaning here")
            guards.append(Exists(where, negative))
        elif one.find(exp.Select):
            raise InvalidInput("Only [NOT] EXISTS (SELECT … from the same table) is understood as a subquery here")
        else:
            parts.append(predicate(one))
    return all_of(parts), tuple(guards)


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    return [*_conjuncts(node.left), *_conjuncts(node.right)] if isinstance(node, exp.And) else [node]


def _assignments(
    nodes: list[exp.Expr], columns: tuple[str, ...], source: tuple[str, ...] = ()
) -> tuple[Assignment, ...]:
    made = []
    for node in nodes:
        if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
            raise InvalidInput(f"{node.sql(dialect='spark')} is not an assignment")
        made.append(Assignment(_known(node.this.name, columns), _term(node.expression, columns, source)))
    return tuple(made)


def _term(node: exp.Expr, columns: tuple[str, ...], source: tuple[str, ...] = ()) -> Term:
    if isinstance(node, exp.Paren):
        return _term(node.this, columns, source)
    value = literal_value(node)
    if value is not NOT_LITERAL:
        return Term(value)
    if isinstance(node, exp.Column):
        of_source = bool(source) and (node.table.lower() == "s" or node.name not in columns)
        return Term(column=_known(node.name, source if of_source else columns), source=of_source)
    if isinstance(node, exp.Add | exp.Sub):
        base, plus = _term(node.this, columns, source), literal_value(node.expression)
        if base.column and isinstance(plus, int):
            return base._replace(plus=base.plus + (plus if isinstance(node, exp.Add) else -plus))
    raise InvalidInput(
        f"{node.sql(dialect='spark')} has no exact meaning here",
        hint="use a literal, a column, or a column plus a number",
    )


def _known(name: str, columns: tuple[str, ...]) -> str:
    if name not in columns:
        raise InvalidInput(f"There is no column {name!r}", hint=f"the columns are {', '.join(columns)}")
    return name


def _merge(node: exp.Merge, columns: tuple[str, ...]) -> Merge:
    using = node.args["using"]
    values = using.find(exp.Values)
    alias = using.args.get("alias") or (values.args.get("alias") if values else None)
    if values is None or alias is None or not alias.columns:
        raise InvalidInput("MERGE needs USING (VALUES …) AS s(column, …) here", hint="name the source's columns")
    names = tuple(column.name for column in alias.columns)
    source = tuple(tuple(literal_value(one) for one in (row.expressions or [row])) for row in values.expressions)
    on = tuple(_key(one, alias.name, columns, names) for one in _conjuncts(node.args["on"]))
    return Merge(names, source, on, tuple(_clause(one, columns, names) for one in node.args["whens"].expressions))


def _key(node: exp.Expr, alias: str, columns: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, str]:
    if isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
        left, right = (node.right, node.left) if node.left.table == alias else (node.left, node.right)
        return _known(left.name, columns), _known(right.name, names)
    raise InvalidInput(f"MERGE … ON {node.sql(dialect='spark')}: only equal keys have an exact meaning here")


def _clause(node: exp.When, columns: tuple[str, ...], names: tuple[str, ...]) -> MergeClause:
    when = "matched" if node.args["matched"] else "not matched by source" if node.args.get("source") else "not matched"
    condition = predicate(node.args["condition"]) if node.args.get("condition") else ALWAYS
    then = node.args["then"]
    if isinstance(then, exp.Update):
        star = any(isinstance(one, exp.Star) for one in then.expressions) or not then.expressions
        made = tuple(Assignment(name, Term(column=name, source=True)) for name in names if name in columns)
        return MergeClause(when, "update", condition, made if star else _assignments(then.expressions, columns, names))
    if isinstance(then, exp.Insert):
        return MergeClause(when, "insert", condition, values=_insert_values(then, columns, names))
    return MergeClause(when, "delete", condition)


def _insert_values(node: exp.Insert, columns: tuple[str, ...], names: tuple[str, ...]) -> tuple[Term, ...]:
    if isinstance(node.this, exp.Star) or node.expression is None:
        given = {name: Term(column=name, source=True) for name in names}
    else:
        targets = [one.name for one in node.this.expressions]
        terms = [_term(one, columns, names) for one in node.expression.expressions]
        given = dict(zip(targets, (term._replace(source=term.column is not None) for term in terms), strict=True))
    return tuple(given.get(name, Term()) for name in columns)
