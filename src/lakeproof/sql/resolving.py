"""A sqlglot condition or value with every name resolved: one `Resolver` for one statement.

Nothing is read as something else: what has no exact meaning here becomes `Unknown`, with its text and its columns.
Long because it is one visitor: each kind of condition, subquery and value is a method of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from lakeproof.errors import InvalidInput
from lakeproof.sql.expressions import (
    TARGET,
    TRUE,
    Call,
    Column,
    Constant,
    Node,
    Query,
    Subquery,
    Unknown,
)
from lakeproof.sql.job_reading.parts import aggregate_of, has_more, volatile_in
from lakeproof.sql.job_reading.table_names import is_end_of, parts_of, table_key
from lakeproof.sql.kinds import base, comparable, converted
from lakeproof.sql.literals import comparison_of, constant_of

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_FUNCTIONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Lower: ("lower", "string"),
    exp.Upper: ("upper", "string"),
    exp.Length: ("length", "int"),
    exp.Abs: ("abs", ""),
}
_PLAIN_TABLE = {"this", "db", "catalog", "alias"}
_PLAIN_QUERY = {"expressions", "from_", "where", "kind", "hint", "operation_modifiers"}


@dataclass
class Relation:
    """What a name in FROM stands for: a table of the file, or a source of which only the names used are known."""

    key: str
    alias: str
    table: str
    columns: dict[str, tuple[str, str]]  # lower-case name → (name, kind)
    free: bool = False
    listed: bool = False  # rows of literals: their kinds are those of what they are compared with or written to
    aliased: bool = True  # else `alias` is the table's own name, of which a qualifier may leave out the front

    def answers_to(self, qualifier: str) -> bool:
        """Whether a qualifier means this relation."""
        if self.aliased:
            return qualifier == self.alias
        return is_end_of(qualifier, self.alias) or is_end_of(self.alias, qualifier)


@dataclass
class Resolver:
    """Resolves the parts of one statement. `tables`: the columns of every table of the file, by lower-case name."""

    tables: Mapping[str, Mapping[str, tuple[str, str]]]
    scopes: list[list[Relation]] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    read_unknown: dict[str, tuple[str, ...]] = field(default_factory=dict)  # text → tables that it reads
    subqueries: int = 0

    # ------------------------------------------------------------ conditions

    def condition(self, node: exp.Expr | None) -> Node:
        """A condition of WHERE, ON or AND; nothing at all is true."""
        if node is None:
            return TRUE
        if isinstance(node, exp.Paren | exp.Where):
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            return Call(
                "and" if isinstance(node, exp.And) else "or", (self.condition(node.left), self.condition(node.right))
            )
        if isinstance(node, exp.Not):
            return Call("not", (self.condition(node.this),))
        if node.args.get("negate"):  # NOT LIKE is a LIKE with a flag
            plain = node.copy()
            plain.set("negate", False)
            return Call("not", (self.condition(plain),))
        found = None if has_more(node) else self.atom(node)
        return self.unknown_condition(node) if found is None else found

    def atom(self, node: exp.Expr) -> Node | None:
        """A condition without AND, OR and NOT at its top, or `None` where it has no exact meaning."""
        if isinstance(node, exp.Boolean | exp.Null):
            return Constant(bool(node.this), "boolean") if isinstance(node, exp.Boolean) else Constant(None, "boolean")
        if isinstance(node, exp.Column):
            column = self.column(node, wanted="boolean")
            return column if column.kind == "boolean" else None
        if type(node) in COMPARISONS:
            return self.compared(COMPARISONS[type(node)], node.args["this"], node.args["expression"])
        if isinstance(node, exp.NullSafeNEQ):  # IS DISTINCT FROM
            same = self.compared("<=>", node.this, node.expression)
            return None if same is None else Call("not", (same,))
        if isinstance(node, exp.Is):
            return self.is_(node)
        if isinstance(node, exp.Between):
            low = self.compared(">=", node.this, node.args["low"])
            high = self.compared("<=", node.this, node.args["high"])
            return None if low is None or high is None else Call("and", (low, high))
        if isinstance(node, exp.In):
            return self.in_(node)
        if isinstance(node, exp.Like | exp.StartsWith):
            return self.like(node)
        return self.exists(node) if isinstance(node, exp.Exists) else None

    def is_(self, node: exp.Is) -> Node | None:
        """IS NULL, IS TRUE, IS FALSE of a column."""
        column = self.simple(node.this)
        if not isinstance(column, Column):
            return None
        if isinstance(node.expression, exp.Null):
            return Call("is null", (column,))
        if isinstance(node.expression, exp.Boolean) and column.kind == "boolean":
            return Call("<=>", (column, Constant(bool(node.expression.this), "boolean")))
        return None

    def compared(self, operator: str, left: exp.Expr, right: exp.Expr) -> Node | None:
        """Two simple values compared, or `None`."""
        one, other = self.simple(left), self.simple(right)
        if one is None or other is None:
            return None
        one, other = self._typed(one, other), self._typed(other, one)
        if isinstance(one, Constant) and not isinstance(other, Constant):
            one, other, operator = other, one, FLIPPED[operator]
        return comparison_of(operator, one, other)

    def _typed(self, one: Node, beside: Node) -> Node:
        """A source's column gets the kind of what it stands beside."""
        if isinstance(one, Column) and one.kind == "free" and beside.kind not in ("free", "null"):
            return self.learn(one, beside.kind)
        return one

    def in_(self, node: exp.In) -> Node | None:
        sought = self.simple(node.this)
        query = node.args.get("query")
        if sought is None or isinstance(sought, Subquery):
            return None
        if query is not None:
            inner = query.this if isinstance(query, exp.Subquery) else query
            made = self.query(inner)
            if made is None or len(made.outputs) != 1 or not comparable(sought.kind, made.outputs[0].kind):
                return None
            return Subquery("in", made, sought)
        options = [
            comparison_of("=", self._typed(sought, option), option)
            for option in map(self.simple, node.expressions)
            if option
        ]
        if len(options) < len(node.expressions) or None in options:
            return None
        return Call("or", tuple(option for option in options if option is not None)) if len(options) > 1 else options[0]

    def like(self, node: exp.Expr) -> Node | None:
        """`column LIKE 'prefix%'`; other patterns have no exact meaning."""
        column, pattern = self.simple(node.this), self.simple(node.expression)
        if not isinstance(column, Column) or not isinstance(pattern, Constant) or node.args.get("escape"):
            return None
        column = self._typed(column, pattern)
        if column.kind != "string" or not isinstance(pattern.value, str):
            return None
        text = pattern.value
        if isinstance(node, exp.StartsWith):
            return Call("starts with", (column, pattern))
        if not set(text) & set("%_\\"):
            return Call("=", (column, pattern))
        if text.endswith("%") and not set(text[:-1]) & set("%_\\"):
            return Call("starts with", (column, Constant(text[:-1], "string")))
        return None

    # ------------------------------------------------------------ subqueries

    def exists(self, node: exp.Exists) -> Node | None:
        inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        if not isinstance(inner, exp.Select):
            return None
        made = self.query(inner, outputs=False)
        if made is None:
            return None
        picked = [one.this if isinstance(one, exp.Alias) else one for one in inner.expressions]
        if any(aggregate_of(one)[0] for one in picked):
            return TRUE  # one row of aggregates is a row, whatever it holds
        plain = all(isinstance(one, exp.Star | exp.Column) or constant_of(one) is not None for one in picked)
        return Subquery("exists", made) if plain else None

    def query(self, node: exp.Expr, *, outputs: bool = True, relation: str = "") -> Query | None:
        """A plain SELECT of one table of the file, or `None`."""
        if not isinstance(node, exp.Select):
            return None
        odd = {key for key, value in node.args.items() if value and key not in _PLAIN_QUERY}
        if odd - ({"distinct", "order"} if not outputs or not relation else set()):
            return None
        table = self._single(node)
        if table is None:
            return None
        self.subqueries += not relation
        self.scopes.append([self.relation(table, relation or f"q{self.subqueries}")])
        try:
            return self._selected(node, table, outputs)
        finally:
            self.scopes.pop()

    def _single(self, node: exp.Select) -> exp.Table | None:
        source = node.args.get("from_")
        found = source.this if source is not None else None
        return found if found is not None and self.table_of(found) is not None else None

    def table_of(self, node: exp.Expr) -> str | None:
        """The table of the file that a plain name in FROM stands for; `None`: none, or not all of it as it is."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return None
        more = [key for key, value in node.args.items() if value and key not in _PLAIN_TABLE]
        alias = node.args.get("alias")
        if more or (alias is not None and alias.args.get("columns")):
            return None
        return table_key(".".join(parts_of(node)), self.tables)

    def tables_in(self, node: exp.Expr) -> list[str]:
        """The tables of the file that a part of a statement reads, in whatever way."""
        found = (table_key(".".join(parts_of(one)), self.tables) for one in node.find_all(exp.Table))
        return [one for one in found if one is not None]

    def _selected(self, node: exp.Select, table: exp.Table, outputs: bool) -> Query | None:
        key = self.scopes[-1][0].key
        where = self.condition(node.args.get("where"))
        found: list[Node] = []
        aggregates: list[str] = []
        for one in self.expanded(node.expressions) if outputs else ():
            inner = one.this if isinstance(one, exp.Alias) else one
            name, argument = aggregate_of(inner)
            value = (
                TRUE if name and argument is None else self.value(argument if name and argument is not None else inner)
            )
            if isinstance(value, Unknown):
                return None
            found.append(value)
            aggregates.append(name)
        if any(aggregates) and not all(a or isinstance(f, Constant) for a, f in zip(aggregates, found, strict=True)):
            return None
        return Query(self.scopes[-1][0].table, key, where, tuple(found), tuple(aggregates) if any(aggregates) else ())

    def expanded(self, nodes: list[exp.Expr]) -> list[exp.Expr]:
        """The selected expressions, with `*` spelled out."""
        found: list[exp.Expr] = []
        for one in nodes:
            star = isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star))
            if star:
                relation = self.scopes[-1][0]
                found += [exp.column(name, table=relation.alias) for name, _ in relation.columns.values()]
            else:
                found.append(one)
        return found

    def relation(self, table: exp.Expr, key: str) -> Relation:
        """The relation that a table in FROM is; one that the file does not create is free."""
        name = self.table_of(table) or ""
        alias = table.alias.lower() or ".".join(parts_of(table))
        return Relation(key, alias, name, dict(self.tables.get(name, {})), free=not name, aliased=bool(table.alias))

    # ------------------------------------------------------------ values

    def simple(self, node: exp.Expr) -> Node | None:
        """A column, a literal, or the value of a subquery; `None`: something else."""
        if isinstance(node, exp.Paren):
            return self.simple(node.this)
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, exp.Subquery):
            made = self.query(node.this)
            if made is None or len(made.outputs) != 1 or not made.aggregates:
                return None
            kind = "int" if made.aggregates[0].startswith("count") else made.outputs[0].kind
            return Subquery("value", made, kind=kind)
        return constant_of(node)

    def value(self, node: exp.Expr, kind: str = "") -> Node:
        """A value to write: exact where it is simple, or a column and a number; else unknown."""
        if isinstance(node, exp.Paren | exp.Alias):
            return self.value(node.this, kind)
        found = self.simple(node)
        if found is not None:
            return found
        if isinstance(node, exp.Add | exp.Sub):
            left, right = self.simple(node.left), self.simple(node.right)
            if isinstance(left, Constant) and isinstance(node, exp.Add):
                left, right = right, left
            if isinstance(left, Column) and left.kind == "free" and kind:
                left = self.learn(left, kind)
            if isinstance(left, Column) and isinstance(right, Constant) and base(left.kind) in ("int", "decimal"):
                step = converted(right.value, left.kind)
                if step is not None:
                    return Call(_ARITHMETIC[type(node)], (left, Constant(step, left.kind)), left.kind)
        return self.unknown(node, "other")

    def computed(self, node: exp.Expr) -> Node | None:
        """How to compute an expression from known values, where we can."""
        if isinstance(node, exp.Paren):
            return self.computed(node.this)
        found = self.simple(node)
        if found is not None:
            return None if isinstance(found, Subquery) else found
        if type(node) in COMPARISONS or type(node) in _ARITHMETIC:
            left, right = self.computed(node.args["this"]), self.computed(node.args["expression"])
            name = COMPARISONS.get(type(node)) or _ARITHMETIC[type(node)]
            if left is None or right is None:
                return None
            if type(node) in COMPARISONS:
                return comparison_of(name, left, right)
            exact = base(left.kind) in ("int", "decimal") and base(right.kind) in ("int", "decimal")
            return Call(name, (left, right), _wider(left.kind, right.kind)) if exact else None
        if type(node) in _FUNCTIONS:
            inner = self.computed(node.this)
            name, kind = _FUNCTIONS[type(node)]
            fits = inner is not None and base(inner.kind) in (("int", "decimal") if name == "abs" else ("string",))
            return Call(name, (inner,), kind or inner.kind) if inner is not None and fits else None
        return None

    def unknown(self, node: exp.Expr, kind: str) -> Unknown:
        """A part without exact meaning, noted; its names must still be names of columns."""
        text = node.sql(dialect="spark")
        written = tuple(dict.fromkeys(self.tables_in(node)))
        if written:
            self.read_unknown[text] = written
        if node.find(exp.Table):
            return Unknown(text, self._outer_columns(node), kind)
        columns = tuple(dict.fromkeys(self.column(one) for one in node.find_all(exp.Column)))
        return Unknown(text, columns, kind, self.computed(node))

    def unknown_condition(self, node: exp.Expr) -> Node:
        """A condition without exact meaning. One that looks at two rows, or that time or chance decide, has two parts.

        One part is a property of the first row; the other says what becomes of rows with it and of rows without it
        beside this other row, or in this run.
        """
        made = self.unknown(node, "boolean")
        changing = bool(volatile_in(node))
        columns = made.columns or tuple(self._any_column() if changing else ())
        relations = sorted(dict.fromkeys(one.relation for one in columns), key=lambda one: one != TARGET)
        if len(relations) < 2 and not changing:
            return made
        if len(relations) + changing > 2:
            self.read_unknown.setdefault(made.text, self._tables_of(relations))
        first = tuple(one for one in columns if one.relation == relations[0]) if relations else ()
        rest = tuple(one for one in columns if one not in first)
        has = Unknown(made.text, first, "boolean")
        ways = [Unknown(f"{made.text} of `{word}`", rest, "choice") for word in ("a row that has it", "another row")]
        return Call("or", (Call("and", (has, ways[0])), Call("and", (Call("not", (has,)), ways[1]))))

    def _any_column(self) -> list[Column]:
        """A column of the row that a condition is asked of, where it names none."""
        found = [Column(one.key, *pair) for one in self.scopes[-1] for pair in one.columns.values()]
        return found[:1]

    def _tables_of(self, relations: list[str]) -> tuple[str, ...]:
        every = [one for scope in self.scopes for one in scope if one.key in relations and one.table]
        return tuple(dict.fromkeys(one.table for one in every))

    def _outer_columns(self, node: exp.Expr) -> tuple[Column, ...]:
        """The columns outside a subquery that it surely looks at; others are its own."""
        found: list[Column] = []
        for one in node.find_all(exp.Column):
            qualifier = ".".join(parts_of(one)[:-1])
            if qualifier and any(r.answers_to(qualifier) for scope in self.scopes for r in scope):
                found.append(self.column(one))
        return tuple(dict.fromkeys(found))

    # ------------------------------------------------------------ names

    def column(self, node: exp.Column, wanted: str = "") -> Column:
        """The column that a name stands for, from the innermost scope outwards."""
        parts = parts_of(node)
        found = self._named(".".join(parts[:-1]), node.name, wanted) or self._nested(parts)
        if found is not None:
            return found
        there = [f"{spelled}" for scope in self.scopes for one in scope for spelled, _ in one.columns.values()]
        said = f"{node.table}.{node.name}" if node.table else node.name
        raise InvalidInput(f"There is no column {said!r}", hint=f"the columns are {', '.join(dict.fromkeys(there))}")

    def _named(self, qualifier: str, name: str, wanted: str) -> Column | None:
        for scope in reversed(self.scopes):
            fitting = [one for one in scope if not qualifier or one.answers_to(qualifier)]
            exact = [one for one in fitting if name.lower() in one.columns]
            if len(exact) > 1 or (qualifier and len(fitting) > 1):
                hint = f"say {exact[0].alias}.{name}" if exact and not qualifier else "give the tables aliases"
                raise InvalidInput(f"The column {name!r} is ambiguous", hint=hint)
            if exact:
                return Column(exact[0].key, *exact[0].columns[name.lower()])
            free = [one for one in fitting if one.free]
            if free:
                free[0].columns[name.lower()] = (name, wanted or "free")
                return Column(free[0].key, name, wanted or "free")
            if qualifier and fitting:
                break
        return None

    def _nested(self, parts: list[str]) -> Column | None:
        """The column with fields of its own that the front of a longer name is; nothing is known of its fields here."""
        for end in range(1, len(parts)):
            qualifier, name = ".".join(parts[: end - 1]), parts[end - 1]
            there = [one for scope in self.scopes for one in scope if not qualifier or one.answers_to(qualifier)]
            if any(one.columns.get(name, ("", ""))[1] == "other" or (qualifier and one.free) for one in there):
                return self._named(qualifier, name, "other")
        return None

    def learn(self, column: Column, kind: str) -> Column:
        """A free source's column has this kind from now on."""
        for scope in self.scopes:
            for one in scope:
                if one.key == column.relation and (one.free or one.listed):
                    one.columns[column.name.lower()] = (column.name, kind)
        return Column(column.relation, column.name, kind)


def _wider(left: str, right: str) -> str:
    """The kind of what arithmetic makes of two exact numbers: for comparing, any decimal is as good as another."""
    return left if base(left) == "decimal" else right
