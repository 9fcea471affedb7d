"""Columns cut to a few values each: every constant in the statements, and what lies between and beside them.

Two values that no statement can tell apart are one. Predicates are then exact on what is left; a predicate that cannot
be decided becomes a hidden column that is true of some rows and false of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from lakeproof.commit.row_command import ANYTHING, RowCommand, Term, merge_filter
from lakeproof.filters import And, Compare, Expression, In, IsNull, Opaque, Or, StartsWith, all_of, any_of
from lakeproof.format import Row, Value
from lakeproof.jobs.reading import Jobs

_RANGES = ("<", "<=", ">", ">=")
MOST_ALTERNATIVES = 24


class Domain(NamedTuple):
    """The values of one column. `read`: some statement chooses rows by it."""

    values: tuple[Value, ...]
    read: bool

    def anything(self) -> tuple[Value, ...]:
        """What an unknown value may be: every value, or just a new one where nobody looks."""
        return self.values if self.read else self.values[-1:]


class Abstraction(NamedTuple):
    """The columns that a model needs (hidden ones last), their domains, and the hidden predicates' texts."""

    columns: tuple[str, ...]
    domains: Mapping[str, Domain]
    hidden: Mapping[str, str]  # text of the predicate → hidden column


def abstracted(jobs: Jobs) -> Abstraction:
    """The abstraction that the file's own constants make."""
    commands = [command for job in jobs.jobs for command in job.commands]
    texts = dict.fromkeys(text for command in commands for e in _expressions(command) for text in _opaque(e))
    hidden = {text: f"?{number}" for number, text in enumerate(texts, 1)}
    domains = {name: _domain(name, jobs, commands) for name in jobs.shape.columns}
    domains |= {name: Domain((True, False), True) for name in hidden.values()}
    return Abstraction((*jobs.shape.columns, *hidden.values()), domains, hidden)


def alternatives(command: RowCommand, cut: Abstraction, columns: tuple[str, ...]) -> Iterator[RowCommand]:
    """The commands that a statement with unknown parts may be."""
    known = _without_opaque(command, cut)
    for chosen in _with_source(known, cut):
        yield from _with_rows(chosen, cut, columns)


def first_rows(jobs: Jobs, cut: Abstraction) -> list[tuple[tuple[Row, ...], ...]]:
    """The tables to begin with: the set-up's, or else each row alone, all in one file, and each in its own."""
    if jobs.rows:
        wide = tuple(tuple((*row, *(True for _ in cut.hidden)) for row in rows) for rows in jobs.rows)
        return [wide]
    read = [
        cut.domains[name].values if cut.domains[name].read else cut.domains[name].values[:1] for name in cut.columns
    ]
    rows = [row for row in product(*read) if None not in row][:6]
    together = tuple(rows[:3])
    return [*[((row,),) for row in rows], (together,), tuple((row,) for row in together)]


# ---------------------------------------------------------------- domains


def _domain(name: str, jobs: Jobs, commands: list[RowCommand]) -> Domain:
    constants: dict[Value, None] = {}
    ranges = read = False
    for expression in (e for command in commands for e in _expressions(command)):
        for leaf in _leaves(expression, name):
            read = True
            ranges = ranges or (isinstance(leaf, Compare) and leaf.operator in _RANGES) or isinstance(leaf, StartsWith)
            constants |= dict.fromkeys(_constants(leaf))
    read = read or any(name in pair for command in commands if command.merge for pair in command.merge.on)
    read = read or any(field.column == name for field in jobs.shape.specs[0])
    at = jobs.shape.columns.index(name)
    for value in _written(name, at, jobs, commands):
        constants[value] = None
    plain = [value for value in constants if value is not None and value is not ANYTHING]
    found: list[Value] = sorted(plain, key=lambda v: (type(v).__name__, v))
    found = _with_gaps(found) if ranges else found
    more: list[Value] = [*found, _other(found, name)]
    if len(more) < 2 or not read:
        more = [*more, _other(more, name)]
    return Domain((*more, *([None] if None in constants else [])), read)


def _with_gaps(values: list[Value]) -> list[Value]:
    """Each constant, and a value before, between and behind."""
    out: list[Any] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            out.append(value)
        elif isinstance(value, str):
            out += [value[:-1] or "", value, value + "0"]
        else:
            out += [value - 1, value, value + 1]
    return list(dict.fromkeys(out))


def _other(values: Iterable[Value], name: str) -> Value:
    """A value that no statement names."""
    taken = list(values)
    numbers = [value for value in taken if isinstance(value, int | float) and not isinstance(value, bool)]
    if numbers:
        return max(numbers) + 10
    fresh = (f"{name}{number}" for number in range(1, 100))
    return next(word for word in fresh if word not in taken)


def _written(name: str, at: int, jobs: Jobs, commands: list[RowCommand]) -> Iterator[Value]:
    for rows in jobs.rows:
        yield from (row[at] for row in rows)
    for command in commands:
        yield from (row[at] for row in command.rows)
        yield from (one.term.value for one in command.assignments if one.column == name and one.term.column is None)
        merge = command.merge
        if merge is None:
            continue
        if name in merge.source_columns:
            yield from (row[merge.source_columns.index(name)] for row in merge.source)
        for clause in merge.clauses:
            terms = [one.term for one in clause.assignments if one.column == name]
            terms += [clause.values[at]] if clause.values else []
            yield from (term.value for term in terms if term.column is None)


def _expressions(command: RowCommand) -> Iterator[Expression]:
    yield command.where
    yield from (guard.where for guard in command.exists)
    if command.select is not None:
        yield command.select.where
    if command.merge is not None:
        yield merge_filter(command.merge)
        yield from (clause.condition for clause in command.merge.clauses)


def _leaves(expression: Expression, name: str) -> Iterator[Compare | In | IsNull | StartsWith]:
    if isinstance(expression, And | Or):
        for part in expression.parts:
            yield from _leaves(part, name)
    elif isinstance(expression, Compare | In | IsNull | StartsWith) and expression.column == name:
        yield expression


def _constants(leaf: Compare | In | IsNull | StartsWith) -> tuple[Value, ...]:
    if isinstance(leaf, Compare):
        return (leaf.value,)
    if isinstance(leaf, In):
        return leaf.values
    return (leaf.prefix,) if isinstance(leaf, StartsWith) else (None,)


def _opaque(expression: Expression) -> Iterator[str]:
    if isinstance(expression, And | Or):
        for part in expression.parts:
            yield from _opaque(part)
    elif isinstance(expression, Opaque):
        yield (
            expression.text.removeprefix("NOT (").removesuffix(")")
            if expression.text.startswith("NOT (")
            else expression.text
        )


# ---------------------------------------------------------------- unknown parts


def _decided(expression: Expression, cut: Abstraction) -> Expression:
    if isinstance(expression, And):
        return all_of(_decided(part, cut) for part in expression.parts)
    if isinstance(expression, Or):
        return any_of(_decided(part, cut) for part in expression.parts)
    if isinstance(expression, Opaque):
        text = next(_opaque(expression))
        return Compare(cut.hidden[text], "=", not expression.text.startswith("NOT ("))
    return expression


def _without_opaque(command: RowCommand, cut: Abstraction) -> RowCommand:
    if not cut.hidden:
        return command
    merge = command.merge
    if merge is not None:
        clauses = tuple(c._replace(condition=_decided(c.condition, cut)) for c in merge.clauses)
        merge = merge._replace(clauses=clauses)
    return command._replace(
        where=_decided(command.where, cut),
        exists=tuple(guard._replace(where=_decided(guard.where, cut)) for guard in command.exists),
        select=command.select and command.select._replace(where=_decided(command.select.where, cut)),
        merge=merge,
    )


def _with_source(command: RowCommand, cut: Abstraction) -> Iterator[RowCommand]:
    """A MERGE whose source is not known: any one row."""
    merge = command.merge
    if merge is None:
        yield command
        return
    sources: list[tuple[Row, ...]] = [merge.source]
    if not merge.source:
        choices = [cut.domains[name].anything() for name in merge.source_columns]
        sources = [((row),) for row in list(product(*choices))[:MOST_ALTERNATIVES] if None not in row]
    for source in sources:
        clauses = tuple(
            c._replace(values=(*c.values, *(Term(True) for _ in cut.hidden))) if c.values else c for c in merge.clauses
        )
        text = command.text if merge.source else f"{command.text}  [source: {' '.join(map(str, source[0]))}]"
        yield command._replace(merge=merge._replace(source=source, clauses=clauses), text=text)


def _with_rows(command: RowCommand, cut: Abstraction, columns: tuple[str, ...]) -> Iterator[RowCommand]:
    """Unknown values in VALUES and SET: each value of the column's domain."""
    unknown_rows = any(value is ANYTHING for row in command.rows for value in row)
    wide = [(*row, *(True for _ in cut.hidden)) for row in command.rows]
    options = [
        [_choices(value, cut.domains[name]) for name, value in zip(cut.columns, row, strict=True)] for row in wide
    ]
    rows = [tuple(product(*choices))[:MOST_ALTERNATIVES] for choices in options]
    for chosen in product(*rows):
        told = command.text + (f"  [row: {' '.join(map(str, chosen[0]))}]" if unknown_rows else "")
        yield from _with_assignments(command._replace(rows=tuple(chosen), text=told), cut)


def _choices(value: Value, domain: Domain) -> tuple[Value, ...]:
    return domain.anything() if value is ANYTHING else (value,)


def _with_assignments(command: RowCommand, cut: Abstraction) -> Iterator[RowCommand]:
    open_ = [one for one in command.assignments if one.term.value is ANYTHING]
    if not open_:
        yield command
        return
    for values in product(*(cut.domains[one.column].anything() for one in open_)):
        given = dict(zip([one.column for one in open_], values, strict=True))
        made = tuple(
            one._replace(term=one.term._replace(value=given[one.column])) if one.column in given else one
            for one in command.assignments
        )
        yield command._replace(assignments=made, text=f"{command.text}  [{given}]")
