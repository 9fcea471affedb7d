"""Small files in the oracle's own grammar, each about one thing: the shortest that a planted error shows on."""

from __future__ import annotations

from jobs_oracle.generator import CONSTANTS
from jobs_oracle.grammar import (
    Between,
    Clause,
    Column,
    Compares,
    File,
    Guard,
    Job,
    Joined,
    Not,
    Null,
    Odd,
    OneOf,
    Predicate,
    Prefix,
    Statement,
    Table,
    Term,
)
from lakeproof.format import Value

COLUMNS = (Column("id", "int"), Column("c1", "string"), Column("c2", "int"))
Rows = tuple[tuple[Value, ...], ...]


def file(
    *jobs: tuple[Statement, ...],
    rows: Rows = (),
    level: str = "snapshot",
    policy: str = "iceberg-spark",
    partition: tuple[tuple[str, str, str], ...] = (),
    numbers: tuple[Value, ...] = (1, 2, 5),
) -> File:
    """Jobs on one merge-on-read table; each given row is a data file of its own; `numbers`: what rows often hold."""
    words = ("delete", "update", "merge")
    properties = [(f"write.{word}.mode", "merge-on-read") for word in words]
    properties += [(f"write.{word}.isolation-level", level) for word in (*words, "insert")]
    table = Table("orders", COLUMNS, partition, tuple(properties))
    constants: dict[str, list[Value]] = {**CONSTANTS, "int": list(numbers), "string": ["a", "b"]}
    first = tuple(("orders", (row,)) for row in rows)
    named = tuple(Job(f"job{i}", statements) for i, statements in enumerate(jobs, 1))
    return File(0, (table,), named, policy, first, constants=constants)


def delete(where: Predicate, guard: Guard | None = None) -> tuple[Statement]:
    """A job that deletes."""
    return (Statement("delete", "orders", where, guard),)


def recolour(where: Predicate) -> tuple[Statement]:
    """A job that sets c1: beside a DELETE of the same row it brings the row back."""
    return (Statement("update", "orders", where, sets=(("c1", Term("z")),)),)


def merge(*clauses: Clause, source: Rows = ((1, "x", 0),), more: Predicate | None = None) -> tuple[Statement]:
    """A job that merges listed rows by id; no rows: any one row."""
    return (
        Statement(
            "merge",
            "orders",
            source_columns=COLUMNS,
            source=source,
            on=(("id", "id"),),
            on_more=more,
            clauses=clauses,
        ),
    )


def merge_by_name(then: Clause) -> tuple[Statement]:
    """A job that merges any row by a string, which the source calls otherwise."""
    columns = tuple(Column(f"s_{column.name}", column.type) for column in COLUMNS)
    return (Statement("merge", "orders", source_columns=columns, on=(("c1", "s_c1"),), clauses=(then,)),)


def insert(*rows: tuple[Value, ...]) -> tuple[Statement]:
    """A job that inserts."""
    return (Statement("insert", "orders", rows=rows),)


def id_is(value: Value, qualifier: str = "t.") -> Compares:
    """A row of this id."""
    return Compares("id", "=", value, qualifier)


def c2_is(value: Value, qualifier: str = "t.") -> Compares:
    """A row of this c2."""
    return Compares("c2", "=", value, qualifier)


def both(where: Predicate, **more: object) -> File:
    """A DELETE and an UPDATE of the same rows."""
    return file(delete(where), recolour(where), **more)  # type: ignore[arg-type]


ANY = Odd("true", cautious=False)
UPDATE = (("c1", Term("z")),)
ROW: Rows = ((1, "a", 7),)
COUNT = (Statement("count", "orders", id_is(1), terms=(Term(), Term("n"), Term(0)), source_table="orders"),)
SWAP = Statement("update", "orders", id_is(1), sets=(("c2", Term(column="id")), ("id", Term(column="c2"))))
SKEW = file(
    delete(id_is(1), Guard("orders", id_is(2, "x."), False)),
    delete(id_is(2), Guard("orders", id_is(1, "x."), False)),
    level="serializable",
)

FILES: dict[str, File] = {
    "A qualifier is dropped": file(
        merge(Clause("matched", "update", c2_is(5, "s."), UPDATE), source=((1, "x", 5),)), delete(id_is(1)), rows=ROW
    ),
    "NOT is lost": both(Not(id_is(1)), rows=ROW),
    "NOT LIKE is read as LIKE": file(
        delete(Prefix("c1", "a", True, "t.")),
        (Statement("update", "orders", Prefix("c1", "a", True, "t."), sets=(("c2", Term(9)),)),),
        rows=ROW,
    ),
    "A comparison with NULL is false, so that NOT makes it true": both(Not(id_is(None)), rows=ROW),
    "NOT of NULL is true": both(Not(c2_is(5)), rows=((1, "a", None),)),
    "<= is read as <": both(Compares("c2", "<=", 7, "t."), rows=ROW),
    "OR is read as AND": both(Joined("or", (id_is(1), c2_is(5))), rows=ROW),
    "BETWEEN loses its upper end": both(Between("c2", 1, 5, "t."), rows=ROW),
    "An assignment sees the values that the one before it wrote": file(
        (SWAP,), delete(id_is(2)), recolour(id_is(2)), rows=((1, "a", 2),)
    ),
    "The condition of a MERGE clause is ignored": file(
        merge(Clause("matched", "update", c2_is(5), UPDATE)), delete(id_is(1)), rows=ROW
    ),
    "Of MERGE's ON only the last condition is read": file(
        merge(Clause("matched", "update", None, UPDATE), more=c2_is(7)), delete(id_is(2)), rows=((2, "a", 7),)
    ),
    "NOT MATCHED BY SOURCE is ignored": file(
        merge(Clause("not matched by source", "update", None, UPDATE)), delete(id_is(2)), rows=((2, "a", 7),)
    ),
    "INSERT OVERWRITE of a partition replaces the whole table": file(
        (Statement("overwrite", "orders", rows=(("n", 0),), partition=(("id", 5),)),),
        insert((2, "b", 0)),
        rows=ROW,
        level="serializable",
        partition=(("id", "id", "identity"),),
    ),
    "NOT IN (SELECT …) does not mind NULL": file(
        delete(id_is(1), Guard("orders", c2_is(8, "x."), True, column="id")),
        recolour(id_is(1)),
        rows=((1, "a", 7), (None, "b", 8)),
    ),
    "The correlation of a subquery is dropped": file(
        delete(ANY, Guard("orders", c2_is(8, "x."), False, correlated="id")),
        recolour(id_is(1)),
        rows=((1, "a", 7), (2, "b", 8)),
    ),
    "A subquery is taken as true": file(
        delete(ANY, Guard("orders", c2_is(99, "x."), False)), recolour(id_is(1)), rows=ROW
    ),
    "count(*) is always one": file(COUNT, insert((1, "a", 0)), rows=((2, "b", 0),), level="serializable"),
    "Every table is taken to be at snapshot isolation": file(
        COUNT, insert((1, "a", 0)), rows=((2, "b", 0),), level="serializable"
    ),
    "Every table is taken to be copy-on-write": both(id_is(1), rows=ROW),
    "No first row has NULL": both(Null("id", False, "t.")),
    "No value lies between, before or behind constants": both(
        Joined("and", (Compares("c2", ">", 2, "t."), Compares("c2", "<", 5, "t.")))
    ),
    "No value is tried that no statement names": both(
        Joined("and", (Compares("id", "!=", 1, "t."), Compares("id", "!=", 2, "t.")))
    ),
    "Of the constants only the smallest is tried": file(delete(Joined("or", (id_is(1), id_is(5)))), recolour(id_is(5))),
    "Rows are told apart by what they look like now, not by what becomes of them": file(
        delete(Joined("and", (OneOf("id", (1, 5), False, "t."), OneOf("c2", (1, 2, 5), False, "t.")))),
        recolour(Joined("and", (id_is(5), c2_is(5)))),
        numbers=(5,),
    ),
    "No first table has two rows": SKEW,
    "A free source is tried with its first row only": file(
        merge(Clause("matched", "update", Compares("c2", "!=", 5, "s."), UPDATE), source=()), delete(id_is(1))
    ),
    "Columns of two names never hold the same string": file(
        merge_by_name(Clause("matched", "update", None, (("c2", Term(9)),))), delete(id_is(1)), numbers=(1,)
    ),
    "A source's column that no constant is compared with is never NULL": file(
        merge(Clause("matched", "update", Null("c2", False, "s."), UPDATE), source=()), delete(id_is(1)), numbers=(1,)
    ),
    "A target row may be matched by two source rows": file(
        merge(Clause("matched", "update", c2_is(1, "s."), UPDATE), source=((1, "x", 1), (1, "x", 2))),
        delete(id_is(1)),
        rows=ROW,
    ),
    "A filter takes what it cannot know as false": file(
        delete(ANY, Guard("orders", id_is(1, "x."), False)),
        insert((2, "b", 0)),
        rows=ROW,
        level="serializable",
        policy="lakeproof",
    ),
    "A condition that is not known is true of every row": both(Not(Odd("lower(t.c1) = 'a'"))),
}
"""By the planted error that it shows."""

SEEDS = {
    "A qualifier is dropped": 6,
    "NOT is lost": 6,
    "NOT LIKE is read as LIKE": 1190,
    "A comparison with NULL is false, so that NOT makes it true": 6,
    "NOT of NULL is true": 6,
    "<= is read as <": 14,
    "OR is read as AND": 6,
    "BETWEEN loses its upper end": 40,
    "INSERT OVERWRITE of a partition replaces the whole table": 24,
    "Every table is taken to be copy-on-write": 1,
    "Every table is taken to be at snapshot isolation": 6,
    "Of the constants only the smallest is tried": 6,
    "A filter takes what it cannot know as false": 22,
    "A subquery is taken as true": 31,
    "No value lies between, before or behind constants": 34,
    "No value is tried that no statement names": 34,
    "Rows are told apart by what they look like now, not by what becomes of them": 51,
    "The condition of a MERGE clause is ignored": 68,
    "No first table has two rows": 83,
    "A free source is tried with its first row only": 86,
}
"""The first random file, by seed, on which a planted error was met; below a hundred, it is one of `make test`."""
