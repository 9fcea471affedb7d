"""Statements of jobs files, read: `read_statement` gives the `JobStatement` that a text stands for.

Long because it is one reader: each kind of statement is a method or two of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from lakeproof.commit.change import Command
from lakeproof.errors import InvalidInput
from lakeproof.sql.expressions import SOURCE, TARGET, Column, Constant, Node, Unknown
from lakeproof.sql.job_reading.parts import refuse_more, refuse_twice, static_partition
from lakeproof.sql.job_reading.table_names import known_tables, parts_of, refuse_mixed_names
from lakeproof.sql.job_reading.texts import compaction_of, escape_quotes
from lakeproof.sql.job_statements import JobStatement, SourceRows, WhenClause, nodes_of
from lakeproof.sql.kinds import comparable, converted
from lakeproof.sql.literals import constant_of
from lakeproof.sql.predicates import parsed_expression, understood
from lakeproof.sql.resolving import Relation, Resolver

Tables = Mapping[str, Mapping[str, tuple[str, str]]]


def read_statement(text: str, tables: Tables, *, place: str = "") -> JobStatement:
    """The meaning of a statement; `tables` are those that the file creates."""
    try:
        if re.match(r"\s*call\b", text, re.IGNORECASE):
            return compaction_of(text, tables)
        node = parsed_expression(escape_quotes(text), place=place)
        with understood(place):
            _Reader(tables).statement(node)  # the first reading learns the kinds of a free source's columns
            return replace(_Reader(tables).twice(node), text=text.strip())
    except InvalidInput as error:
        raise InvalidInput(error.message, place=error.place or place, hint=error.hint) from None


class _Reader:
    """Reads one statement."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.names = Resolver(tables)
        self.notes: dict[str, None] = {}

    def twice(self, node: exp.Expr) -> JobStatement:
        """The statement read again with the kinds that its first reading found."""
        first = _Reader(self.tables)
        first.statement(node)
        self.learned = {
            (one.key, name): "string" if one.free and kind == "free" else kind  # nothing says its type: any will do
            for one in first.seen
            for name, (_, kind) in one.columns.items()
            if one.free or one.listed
        }
        made = self.statement(node)
        notes = {**self.notes, **dict.fromkeys(_unknown_notes(made))}
        unread = tuple(
            f"`{text}` reads {', '.join(tables)} and has no exact meaning here"
            for text, tables in self.names.read_unknown.items()
        )
        reads = tuple(name for names in self.names.read_unknown.values() for name in names)
        return replace(made, notes=tuple(notes), open=(*made.open, *unread), reads=(*made.reads, *reads))

    learned: Mapping[tuple[str, str], str] = {}

    @property
    def seen(self) -> list[Relation]:
        return self._seen

    def statement(self, node: exp.Expr) -> JobStatement:
        self._seen: list[Relation] = []
        if any(value for key, value in node.args.items() if key.startswith("with")):
            raise InvalidInput("WITH before a command is not understood", hint="write it as a subquery")
        refuse_more(node)
        used = (".".join(parts_of(one)) for one in node.find_all(exp.Table))
        refuse_mixed_names(used, self.tables)
        match node:
            case exp.Insert():
                return self.insert(node)
            case exp.Update() | exp.Delete():
                return self.changed(node)
            case exp.Merge():
                return self.merge(node)
            case exp.TruncateTable():
                return JobStatement(Command.METADATA_DELETE, self.target(node.expressions[0]).table, "")
        raise InvalidInput(
            f"{node.key.upper()} is not a command that changes rows",
            hint="use INSERT, UPDATE, DELETE, MERGE, INSERT OVERWRITE, TRUNCATE or CALL system.rewrite_data_files",
        )

    # ------------------------------------------------------------ relations

    def target(self, node: exp.Expr) -> Relation:
        """The table that the statement changes."""
        if self.names.table_of(node) is None:
            said = node.sql(dialect="spark")
            raise InvalidInput(f"The table {said} is not created in the set-up", hint=known_tables(self.tables))
        return self.names.relation(node, TARGET)

    def enter(self, *relations: Relation) -> None:
        """These relations are in scope from now on."""
        for one in relations:
            for (key, name), kind in self.learned.items():
                if key == one.key and one.free and name not in one.columns:
                    one.columns[name] = (name, kind)
                elif key == one.key and (one.free or one.listed):
                    one.columns[name] = (one.columns[name][0], kind)
            self._seen.append(one)
        self.names.scopes = [list(relations)]

    def known(self, name: str, table: str) -> tuple[str, str]:
        there = self.tables[table]
        if name.lower() not in there:
            hint = f"the columns are {', '.join(spelled for spelled, _ in there.values())}"
            raise InvalidInput(f"There is no column {name!r}", hint=hint)
        return there[name.lower()]

    # ------------------------------------------------------------ UPDATE and DELETE

    def changed(self, node: exp.Update | exp.Delete) -> JobStatement:
        odd = [key for key in ("from_", "using", "limit", "order", "returning") if node.args.get(key)]
        if odd:
            raise InvalidInput(f"{node.key.upper()} with {odd[0].rstrip('_').upper()} is not understood")
        target = self.target(node.this)
        self.enter(target)
        where = self.names.condition(node.args.get("where"))
        if isinstance(node, exp.Delete):
            return JobStatement(Command.DELETE, target.table, "", where)
        return JobStatement(Command.UPDATE, target.table, "", where, self.sets(node.expressions, target))

    def sets(self, nodes: list[exp.Expr], target: Relation) -> tuple[tuple[str, Node], ...]:
        made: list[tuple[str, Node]] = []
        for node in nodes:
            if not isinstance(node, exp.EQ) or not isinstance(node.this, exp.Column):
                raise InvalidInput(f"{node.sql(dialect='spark')} is not an assignment")
            qualifier = ".".join(parts_of(node.this)[:-1])
            if qualifier and not target.answers_to(qualifier):
                raise InvalidInput(f"{node.this.sql(dialect='spark')} is not a column of {target.table}")
            name, kind = self.known(node.this.name, target.table)
            made.append((name, self.fitted(node.expression, kind)))
        if len({name for name, _ in made}) < len(made):
            raise InvalidInput("A column is assigned twice")
        return tuple(made)

    def fitted(self, node: exp.Expr, kind: str) -> Node:
        """A value as the column stores it; what a cast makes of it is not known here."""
        return fitted(self.names.value(node, kind), kind, node.sql(dialect="spark"), self.names)

    # ------------------------------------------------------------ INSERT

    def insert(self, node: exp.Insert) -> JobStatement:
        schema = node.this if isinstance(node.this, exp.Schema) else None
        table = schema.this if schema is not None else node.this
        static = static_partition(node.args.get("partition") or table.args.get("partition"))
        named = table.copy()
        named.set("partition", None)
        target = self.target(named)
        fixed = tuple((self.known(name, target.table)[0], value) for name, value in static.items())
        columns = list(self.tables[target.table].values())
        listed = [self.known(one.name, target.table) for one in schema.expressions] if schema is not None else columns
        refuse_twice([name for name, _ in listed] + [name for name, _ in fixed if schema is not None])
        wanted = [pair for pair in listed if pair[0] not in dict(fixed)]
        command = Command.OVERWRITE if node.args.get("overwrite") else Command.INSERT
        if node.args.get("by_name") or node.args.get("where"):
            raise InvalidInput("INSERT … BY NAME and REPLACE WHERE are not understood")
        whole = node.args.get("source")  # INSERT INTO t TABLE s
        query = exp.select("*").from_(whole) if isinstance(whole, exp.Table) else node.expression
        made = self.inserted(query, wanted, target)
        given = {name: value for (name, _), value in zip(wanted, made.outputs, strict=True)} if made.outputs else {}
        if made.source is not None and made.source.rows:
            rows = tuple(self._full(row, wanted, fixed, columns) for row in made.source.rows)
            made = replace(made, source=replace(made.source, rows=rows))
        else:
            outputs = tuple({**dict(fixed), **given}.get(name, Constant(None, kind)) for name, kind in columns)
            full = tuple(
                made.aggregates[[n for n, _ in wanted].index(name)] if made.aggregates and name in given else ""
                for name, _ in columns
            )
            made = replace(made, outputs=outputs, aggregates=full if made.aggregates else ())
        kind = command if command is Command.OVERWRITE else made.command
        fits = tuple((name, self._static(value, target.table, name)) for name, value in fixed)
        return replace(made, command=kind, table=target.table, partition=fits)

    def _static(self, value: Constant, table: str, name: str) -> Constant:
        kind = self.known(name, table)[1]
        made = converted(value.value, kind) if value.value is not None else None
        if made is None and value.value is not None:
            raise InvalidInput(f"PARTITION ({name} = …): the value does not fit {kind}")
        return Constant(made, kind)

    def _full(
        self,
        row: tuple[Node, ...],
        wanted: list[tuple[str, str]],
        fixed: tuple[tuple[str, Constant], ...],
        columns: list[tuple[str, str]],
    ) -> tuple[Node, ...]:
        given: dict[str, Node] = {name: value for (name, _), value in zip(wanted, row, strict=True)}
        given |= dict(fixed)
        return tuple(given.get(name, Constant(None, kind)) for name, kind in columns)

    def inserted(self, node: exp.Expr, wanted: list[tuple[str, str]], target: Relation) -> JobStatement:
        """What an INSERT adds: listed rows, or a query's."""
        if isinstance(node, exp.Values):
            self.enter()
            rows = tuple(self._values(one, wanted) for one in node.expressions)
            return JobStatement(Command.INSERT, target.table, "", source=SourceRows((), rows=rows))
        if isinstance(node, exp.Subquery):
            return self.inserted(node.this, wanted, target)
        made = self.names.query(node, relation=SOURCE) if isinstance(node, exp.Select) else None
        if made is not None and len(made.outputs) != len(wanted):
            raise InvalidInput(f"The table has {len(wanted)} columns to fill, the SELECT gives {len(made.outputs)}")
        if made is not None:
            outputs = tuple(
                fitted(
                    value,
                    kind if not made.aggregates or not made.aggregates[i].startswith("count") else "int",
                    "",
                    self.names,
                )
                for i, (value, (_, kind)) in enumerate(zip(made.outputs, wanted, strict=True))
            )
            if made.aggregates and any(
                a.startswith("count") and not comparable("int", kind)
                for a, (_, kind) in zip(made.aggregates, wanted, strict=True)
            ):
                raise InvalidInput("A count is written to a column that is not a number")
            source = SourceRows((), table=made.table, where=made.where)
            return JobStatement(
                Command.INSERT_SELECT, target.table, "", outputs=outputs, aggregates=made.aggregates, source=source
            )
        return self.free_insert(node, wanted, target)

    def _values(self, node: exp.Expr, wanted: list[tuple[str, str]]) -> tuple[Node, ...]:
        given = (
            node.expressions if isinstance(node, exp.Tuple) else [node.this if isinstance(node, exp.Paren) else node]
        )
        if len(given) != len(wanted):
            raise InvalidInput(f"The table has {len(wanted)} columns to fill, VALUES gives {len(given)}")
        return tuple(self.fitted(one, kind) for one, (_, kind) in zip(given, wanted, strict=True))

    def free_insert(self, node: exp.Expr, wanted: list[tuple[str, str]], target: Relation) -> JobStatement:
        """An INSERT from a source that nobody knows: any one row, or none."""
        text = node.sql(dialect="spark") if node is not None else "its source"
        read = self.names.tables_in(node) if node is not None else []
        self.notes[f"the rows of `{text}` are not known: any one row stands for them"] = None
        self.enter(Relation(SOURCE, "", "", {}, free=True))
        outputs = tuple(Unknown(f"{name} of `{text}`", (), kind) for name, kind in wanted)
        left = (f"`{text}` reads {', '.join(dict.fromkeys(read))} and has no exact meaning here",) if read else ()
        return JobStatement(
            Command.INSERT,
            target.table,
            "",
            outputs=outputs,
            source=SourceRows((), free=True),
            open=left,
            reads=tuple(read),
        )

    # ------------------------------------------------------------ MERGE

    def merge(self, node: exp.Merge) -> JobStatement:
        if not node.args.get("on"):
            raise InvalidInput("MERGE needs ON", hint="say ON t.id = s.id")
        target = self.target(node.this)
        using = node.args["using"]
        source, listed = self.using(using)
        self.enter(target, source)
        on = self.names.condition(node.args["on"])
        clauses = tuple(self.clause(one, target, source) for one in node.args["whens"].expressions)
        columns = tuple(Column(SOURCE, name, kind) for name, kind in source.columns.values())
        listed = tuple(_converted_row(row, columns) for row in listed)
        rows = SourceRows(columns, "" if source.free or listed else source.table, listed, free=source.free)
        left: tuple[str, ...] = ()
        read: list[str] = []
        if source.free:
            said = using.sql(dialect="spark")
            self.notes[f"the rows of the MERGE's source `{said}` are not known: any one row stands for them"] = None
            read = self.names.tables_in(using)
            left = (f"`{said}` reads {', '.join(dict.fromkeys(read))} and has no exact meaning here",) if read else ()
        return JobStatement(
            Command.MERGE, target.table, "", source=rows, on=on, clauses=clauses, open=left, reads=tuple(read)
        )

    def using(self, node: exp.Expr) -> tuple[Relation, tuple[tuple[Node, ...], ...]]:
        """The source of a MERGE: a table of the file, listed rows, or something free."""
        values = node if isinstance(node, exp.Values) else node.this if isinstance(node, exp.Subquery) else None
        if isinstance(values, exp.Values):
            return self.listed(node, values)
        if self.names.table_of(node) is not None:
            return self.names.relation(node, SOURCE), ()
        own_name = ".".join(parts_of(node)) if isinstance(node, exp.Table) else ""
        return Relation(SOURCE, node.alias.lower() or own_name, "", {}, free=True, aliased=bool(node.alias)), ()

    def listed(self, node: exp.Expr, values: exp.Values) -> tuple[Relation, tuple[tuple[Node, ...], ...]]:
        alias = node.args.get("alias") or values.args.get("alias")
        rows = []
        for one in values.expressions:
            given = one.expressions if isinstance(one, exp.Tuple) else [one.this if isinstance(one, exp.Paren) else one]
            made = [constant_of(value) for value in given]
            if None in made:
                raise InvalidInput(f"VALUES may hold literals only, not {one.sql(dialect='spark')}")
            rows.append(tuple(value for value in made if value is not None))
        width = len(rows[0])
        names = [column.name for column in alias.columns] if alias is not None and alias.columns else []
        names = names or [f"col{i}" for i in range(1, width + 1)]
        if any(len(row) != len(names) for row in rows):
            raise InvalidInput(f"The source has {len(names)} columns, but a row of {width} values")
        columns = {name.lower(): (name, "free") for name in names}
        relation = Relation(SOURCE, alias.name.lower() if alias is not None else "", "", columns, listed=True)
        return relation, tuple(rows)

    def clause(self, node: exp.When, target: Relation, source: Relation) -> WhenClause:
        unmatched = "not matched by source" if node.args.get("source") else "not matched"
        when = "matched" if node.args["matched"] else unmatched
        scope = {"not matched": [source], "not matched by source": [target]}.get(when, [target, source])
        self.names.scopes = [scope]
        try:
            condition = self.names.condition(node.args.get("condition"))
            return self._then(node.args["then"], when, condition, target, source)
        finally:
            self.names.scopes = [[target, source]]

    def _then(self, then: exp.Expr, when: str, condition: Node, target: Relation, source: Relation) -> WhenClause:
        if isinstance(then, exp.Update):
            star = any(isinstance(one, exp.Star) for one in then.expressions) or not then.expressions
            sets = self.star(target, source) if star else self.sets(then.expressions, target)
            return WhenClause(when, "update", condition, sets)
        if isinstance(then, exp.Insert):
            if isinstance(then.this, exp.Star) or then.expression is None:
                return WhenClause(when, "insert", condition, self.star(target, source))
            named = [self.known(one.name, target.table) for one in then.this.expressions] if then.this else []
            named = named or list(self.tables[target.table].values())
            given = then.expression.expressions
            if len(named) != len(given):
                raise InvalidInput(f"INSERT names {len(named)} columns and gives {len(given)} values")
            refuse_twice([name for name, _ in named])
            pairs = zip(named, given, strict=True)
            return WhenClause(
                when, "insert", condition, tuple((name, self.fitted(one, kind)) for (name, kind), one in pairs)
            )
        if then.name.lower() != "delete":
            raise InvalidInput(f"THEN {then.sql(dialect='spark')} is not understood")
        return WhenClause(when, "delete", condition)

    def star(self, target: Relation, source: Relation) -> tuple[tuple[str, Node], ...]:
        """Every column of the target from the source's column of that name."""
        made: list[tuple[str, Node]] = []
        for lower, (name, kind) in self.tables[target.table].items():
            if source.free and lower not in source.columns:
                source.columns[lower] = (name, kind)
            if lower not in source.columns:
                raise InvalidInput(f"The source has no column {name!r}, which * needs")
            spelled, found = source.columns[lower]
            found = kind if found == "free" else found
            source.columns[lower] = (spelled, found)
            made.append((name, fitted(Column(SOURCE, spelled, found), kind, f"s.{spelled}", self.names)))
        return tuple(made)


def _converted_row(row: tuple[Node, ...], columns: tuple[Column, ...]) -> tuple[Node, ...]:
    """A listed row as values of the kinds that its columns are used as."""
    made: list[Node] = []
    for value, column in zip(row, columns, strict=True):
        assert isinstance(value, Constant)
        if column.kind in ("free", "other") or value.value is None:
            made.append(value)
            continue
        fits = converted(value.value, column.kind)
        if fits is None:
            raise InvalidInput(f"{value.value!r} in VALUES is used as {column.kind}", hint="cast it to that type")
        made.append(Constant(fits, column.kind))
    return tuple(made)


def fitted(value: Node, kind: str, text: str, names: Resolver) -> Node:
    """A value for a column of this kind: itself, converted, or unknown where a cast would decide."""
    if isinstance(value, Column) and value.kind == "free":
        return names.learn(value, kind)
    if isinstance(value, Constant):
        if value.value is None:
            return Constant(None, kind)
        made = converted(value.value, kind)
        return Unknown(text or str(value.value), (), kind) if made is None else Constant(made, kind)
    if isinstance(value, Unknown):
        return replace(value, kind=kind)
    if value.kind == kind or kind == "other":
        return value
    if value.kind == "int" and kind == "double":
        return value
    columns = (value,) if isinstance(value, Column) else ()
    return Unknown(text or "a cast", columns, kind)


def _unknown_notes(made: JobStatement) -> list[str]:
    """What is said of each unknown part."""
    found = []
    for node in nodes_of(made):
        if isinstance(node, Unknown) and " of `" not in node.text:
            if node.kind == "boolean":
                found.append(f"`{node.text}` is not known: each row may match it or not")
            else:
                found.append(f"the value of `{node.text}` is not known: it may be any")
    return found
