"""The kinds of columns that random tables have: their types, values, and what such a column is compared with.

Values and literals are SQL text, so that a managed table and plain Spark are given the same words. A kind has few
values, chosen for trouble (extremes, NaN, infinities, both zeros, hours that no clock shows, strings longer than
statistics keep), so that predicates meet them often.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

LONG = "a" * 15
HIGH = "\U0010ffff" * 17  # no longer string of 16 characters is above it, so its bound cannot be cut


class Kind(NamedTuple):
    """A type; `strange` are literals of other types that it may be compared with."""

    type: str
    values: tuple[str, ...]
    strange: tuple[str, ...] = ()
    transforms: tuple[str, ...] = ()
    wider: str = ""  # the kind that it may be widened to

    def value(self, r: Random, nulls: float = 0.12) -> str:
        """One of the values, typed; sometimes null."""
        return f"cast({'null' if r.random() < nulls else r.choice(self.values)} as {self.type})"


def quoted(text: str) -> str:
    """A string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


_TIMES = ("years({c})", "months({c})", "days({c})")
_WHOLE = ("{c}", "bucket(3, {c})", "truncate(4, {c})")  # a width that the least value can be cut to
_DIGITS = ("{c}", "bucket(3, {c})", "truncate(3, {c})")
_INSTANTS = (
    "0001-01-01 00:00:00",
    "1582-10-10 12:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2024-03-10 01:59:59.999999",
    "2024-03-10 02:30:00",  # no clock in New York shows it
    "2024-03-10 03:30:00",
    "2024-11-03 01:30:00",  # and this one twice
    "2024-11-03 01:30:00.000001",
    "9999-12-31 23:59:59.999999",
)
_STRINGS = (
    "", "a", "ab", "abc", "A", "b", " a", "é", "ß", "日本", "😀", "it's", "%", "a%b", "a_", "10", "-5", "1e3", "NaN",
    "true", "2024-01-01", LONG, LONG + "b", LONG + "bc", LONG + "c" * 30, HIGH, HIGH + "x", "\uffff" * 20, "\\n",
)  # fmt: skip
_NUMBERS = (
    "0",
    "1",
    "-1",
    "2.5",
    "1.0",
    "2147483648",
    "9007199254740993",
    "9007199254740993.0",
    "1e3",
    "1e40",
    "-1e39",
)
_WORDS = ("'1'", "'-1'", "'1.5'", "'abc'", "''", "'NaN'", "true")
_REAL = (
    "'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "0", "1.5", "'0.1'", "-1.5", "1", "16777217", "9007199254740993",
)  # fmt: skip
_REAL_ODD = (
    "double('Infinity')", "float('-Infinity')", "double('NaN')", "float('0.1')", "0.1", "-0.0D", "1e39", "-1e39",
    "3.4028235677973366e38", "9007199254740993", "9223372036854775807", "'1.5'", "'NaN'", "'Infinity'", "1.50",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "boolean": Kind("boolean", ("true", "false"), ("'true'", "1", "0", "'abc'"), ("{c}",)),
    "int": Kind(
        "int",
        ("-2147483648", "-1", "0", "1", "2", "5", "7", "2147483647"),
        (*_NUMBERS, *_WORDS, "2147483648", "5.5", "5D", "float('5')", "2147483647.5"),
        _WHOLE,
        "bigint",
    ),
    "bigint": Kind(
        "bigint",
        ("-9223372036854775807 - 1", "-1", "0", "1", "5", "9007199254740992", "9007199254740993",
         "9223372036854775807"),
        (*_NUMBERS, *_WORDS, "9007199254740992.5", "9223372036854775808", "9223372036854775807.5", "9007199254740992D"),
        _WHOLE,
    ),
    "float": Kind("float", (*_REAL, "'3.4028235E38'", "'1.4E-45'"), _REAL_ODD, ("{c}",), "double"),
    "double": Kind("double", (*_REAL, "'1.7976931348623157E308'", "'4.9E-324'"), _REAL_ODD, ("{c}",)),
    "decimal(9,2)": Kind(
        "decimal(9,2)",
        ("0", "-1.5", "5.00", "5.01", "9999999.99", "-9999999.99"),
        (*_NUMBERS, "5.004", "5.005", "4.999", "5D", "double('5.01')", "'5.0'", "'abc'", "9999999.991",
         "double('NaN')"),
        _DIGITS,
        "decimal(38,2)",
    ),
    "decimal(18,0)": Kind(
        "decimal(18,0)", ("0", "-1", "999999999999999999", "9007199254740993"), (*_NUMBERS, "0.5", "'1'"), _DIGITS
    ),
    "decimal(38,2)": Kind(
        "decimal(38,2)", ("0", "5.00", "5.01", "999999999999999999999999999999999999.99"), (*_NUMBERS, "5.004"), _DIGITS
    ),
    "decimal(38,10)": Kind(
        "decimal(38,10)",
        ("0", "1.0000000001", "-1.0000000001", "9999999999999999999999999999.9999999999"),
        (*_NUMBERS, "1.00000000005", "1e28", "'1.0000000001'"),
        _DIGITS,
    ),
    "decimal(5,5)": Kind("decimal(5,5)", ("0", "0.00001", "0.99999", "-0.99999"), ("0", "1", "0.999995", "0.1D", "-1")),
    "string": Kind(
        "string",
        tuple(quoted(one) for one in _STRINGS),
        ("1", "10", "0", "true", "-5", "1000", "date'2024-01-01'", "1.5", "X'61'"),
        ("{c}", "bucket(3, {c})", "truncate(2, {c})", "truncate(16, {c})"),
    ),
    "binary": Kind(
        "binary",
        ("X''", "X'00'", "X'61'", "X'6162'", "X'FF'", f"X'{'FF' * 20}'", f"X'{'61' * 16}62'"),
        ("'a'", "'ab'", "''"),
        ("{c}", "bucket(3, {c})", "truncate(1, {c})"),
    ),
    "date": Kind(
        "date",
        tuple(f"date'{one}'" for one in
              ("0001-01-01", "1582-10-10", "1969-12-31", "1970-01-01", "2024-02-29", "2024-03-10", "9999-12-31")),
        ("'2024-02-29'", "'2024-3-10'", "timestamp'2024-03-10 00:00:00'", "timestamp'2024-03-10 12:00:00'",
         "timestamp_ntz'2024-02-29 00:00:00'", "'abc'", "'1970'"),
        ("{c}", "bucket(3, {c})", *_TIMES),
    ),
    "timestamp": Kind(
        "timestamp",
        tuple(f"timestamp'{one}'" for one in _INSTANTS),
        ("'2024-03-10 03:30:00'", "date'2024-03-10'", "date'9999-12-31'", "timestamp_ntz'2024-03-10 02:30:00'",
         "timestamp_ntz'2024-11-03 01:30:00'", "timestamp'2024-03-10 03:30:00 UTC'", "'abc'", "'2024'"),
        ("{c}", "bucket(3, {c})", *_TIMES, "hours({c})"),
    ),
    "timestamp_ntz": Kind(
        "timestamp_ntz",
        tuple(f"timestamp_ntz'{one}'" for one in _INSTANTS),
        ("'2024-03-10 02:30:00'", "date'2024-03-10'", "timestamp'2024-03-10 02:30:00'",
         "timestamp'2024-11-03 01:30:00'", "timestamp'2024-03-10 06:30:00 UTC'", "'2024-03-10'", "'abc'"),
        ("{c}", "bucket(3, {c})", *_TIMES, "hours({c})"),
    ),
    "struct": Kind(
        "struct<x:int,y:string>",
        ("named_struct('x', 1, 'y', 'a')", "named_struct('x', 5, 'y', null)", "named_struct('x', null, 'y', 'ab')",
         "named_struct('x', -1, 'y', 'it''s')", "named_struct('x', 7, 'y', '')"),
    ),
    "longer struct": Kind(
        "struct<x:int,y:string,z:date>",
        ("named_struct('x', 1, 'y', 'a', 'z', date'2024-02-29')", "named_struct('x', 5, 'y', null, 'z', null)"),
    ),
    "deep": Kind(
        "struct<x:bigint,q:struct<x:double,d:date>>",
        ("named_struct('x', 1, 'q', named_struct('x', 1.5D, 'd', date'2024-02-29'))", "named_struct('x', 5, 'q', null)",
         "named_struct('x', null, 'q', named_struct('x', double('NaN'), 'd', null))",
         "named_struct('x', 9007199254740993, 'q', named_struct('x', double('-Infinity'), 'd', date'1970-01-01'))"),
    ),
    "array": Kind(
        "array<int>", ("array()", "array(1)", "array(1, null, 5)", "array(5, 1)", "array(cast(null as int))")
    ),
    "map": Kind("map<string,int>", ("map()", "map('a', 1)", "map('a', null, 'b', 5)", "map('it''s', 1)")),
}  # fmt: skip
SCALARS = tuple(name for name, kind in KINDS.items() if kind.strange)
FIELDS = {
    "struct": (("x", "int"), ("y", "string")),
    "longer struct": (("x", "int"), ("y", "string"), ("z", "date")),
    "deep": (("x", "bigint"), ("q.x", "double"), ("q.d", "date")),
}


class Column(NamedTuple):
    """A column of a random table; `default` is what a new row has that does not say otherwise, as SQL text."""

    name: str
    kind: str
    required: bool = False
    default: str = ""

    @property
    def of(self) -> Kind:
        """Its kind."""
        return KINDS[self.kind]

    @property
    def sql(self) -> str:
        """Its name as SQL says it."""
        return (
            self.name if self.name.isascii() and self.name.isidentifier() else "`" + self.name.replace("`", "``") + "`"
        )

    @property
    def ddl(self) -> str:
        """How CREATE TABLE declares it."""
        default = f" default {self.default}" if self.default else ""
        return f"{self.sql} {self.of.type}{' not null' if self.required else ''}{default}"


def scalars(columns: tuple[Column, ...]) -> list[tuple[str, Kind]]:
    """What can be compared: columns of simple types and fields of structs, each with its kind."""
    found = [(column.sql, column.of) for column in columns if column.kind in SCALARS]
    for column in columns:
        found += [(f"{column.sql}.{path}", KINDS[kind]) for path, kind in FIELDS.get(column.kind, ())]
    return found
