"""The forms that leaves of random predicates take, as SQL.

`{c}` is the column, `{v}` a value of its type, `{o}` a comparison.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from column_kinds import quoted

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "=", "<", ">")
PATTERNS = (
    "a%",
    "ab%",
    "%b",
    "%",
    "_",
    "a_",
    "%a%",
    "",
    "a\\\\%b",
    "aaaaaaaaaaaaaaab%",
    "A%",
    "é%",
    "it''s",
    "a%b%",
    "\\\\%",
)


class Parameter(NamedTuple):
    """An argument of a statement, and the literal that it stands for."""

    value: Any
    literal: str


PARAMETERS = (
    Parameter(1, "1"),
    Parameter(-5, "-5"),
    Parameter(1 << 40, "1099511627776"),
    Parameter("a", "'a'"),
    Parameter("it's", "'it''s'"),
    Parameter("10", "'10'"),
    Parameter(1.5, "1.5D"),
    Parameter(float("nan"), "double('NaN')"),
    Parameter(None, "null"),
    Parameter(True, "true"),
    Parameter(Decimal("5.00"), "5.00BD"),
    Parameter(date(2024, 2, 29), "date'2024-02-29'"),
)

ANY_TYPE = (
    "coalesce({c}, {v}) {o} {v}",
    "nullif({c}, {v}) is null",
    "cast({c} as string) = cast({v} as string)",
    "cast({c} as string) is not null",
    "if({c} = {v}, true, null)",
    "{c} = {v} or {c} is null",
    "{c} <=> null",
    "hash({c}) = hash({v})",
    "{c} {o} {c}",
    "greatest({c}, {v}) = {v}",
)
_ARITHMETIC = (
    "{c} % 2 = 1", "abs({c}) > 1", "-{c} {o} {v}", "{c} * 0 = 0", "cast({c} as double) {o} cast({v} as double)",
    "cast({c} as decimal(38,5)) {o} {v}", "10 / {c} > 1", "try_divide(10, {c}) > 1", "{c} {o} {v} + 0",
    "cast({c} as float) {o} cast({v} as float)", "cast({c} as int) = 1", "try_cast({c} as int) = 1", "sign({c}) = -1",
)  # fmt: skip
COMPUTED: dict[str, tuple[str, ...]] = {
    "boolean": ("not {c}", "{c} is true", "{c} is not false", "{c} = ({v} is not null)", "cast({c} as int) = 1"),
    "int": (*_ARITHMETIC, "cast({c} as bigint) {o} 5", "{c} + 1 {o} {v}", "try_add({c}, 1) {o} {v}"),
    "bigint": (*_ARITHMETIC, "cast({c} as decimal(20,0)) {o} {v}", "try_add({c}, 1) {o} {v}", "{c} + 1 > {v}"),
    "decimal": (*_ARITHMETIC, "cast({c} as int) = 5", "round({c}, 1) {o} {v}", "try_cast({c} as decimal(4,1)) = 5.0"),
    "float": (*_ARITHMETIC, "isnan({c})", "not isnan({c})", "{c} = -{c}", "{c} > 1e39"),
    "double": (*_ARITHMETIC, "isnan({c})", "not isnan({c})", "nanvl({c}, 0) {o} 0", "{c} > 9223372036854775807"),
    "string": (
        "upper({c}) = 'A'", "length({c}) > 16", "substring({c}, 1, 1) = 'a'", "trim({c}) = 'a'", "{c} || 'x' = 'ax'",
        "try_cast({c} as int) = 10", "{c} rlike '^a.*b'", "concat({c}, {c}) < {v}", "lower({c}) {o} {v}",
        "substring({c}, 1, 16) = substring({v}, 1, 16)", "left({c}, 2) = 'ab'", "locate('s', {c}) > 0",
        "try_cast({c} as double) > 1", "cast({c} as int) = 10",
    ),
    "binary": ("length({c}) > 1", "hex({c}) = '61'", "cast({c} as string) = 'a'", "substring({c}, 1, 1) = X'61'"),
    "date": (
        "year({c}) = 2024", "date_add({c}, 1) {o} {v}", "{c} + interval 1 day {o} {v}", "trunc({c}, 'MM') {o} {v}",
        "cast({c} as timestamp) {o} timestamp'2024-03-10 00:00:00'", "month({c}) in (2, 3)", "datediff({c}, {v}) = 0",
        "cast({c} as timestamp_ntz) {o} timestamp_ntz'2024-03-10 00:00:00'", "date_format({c}, 'yyyy') > '1970'",
    ),
    "timestamp": (
        "year({c}) = 2024", "cast({c} as date) {o} date'2024-03-10'", "hour({c}) = 3", "date_trunc('day', {c}) {o} {v}",
        "{c} + interval 1 hour {o} {v}", "unix_micros({c}) > 0",
        "cast({c} as timestamp_ntz) {o} timestamp_ntz'2024-03-10 03:30:00'",
        "date_trunc('hour', {c}) = {c}", "to_date({c}) = date'2024-11-03'",
    ),
    "timestamp_ntz": (
        "year({c}) = 2024", "cast({c} as date) {o} date'2024-03-10'", "hour({c}) = 2", "date_trunc('day', {c}) = {c}",
        "{c} + interval 1 hour {o} {v}", "cast({c} as timestamp) {o} timestamp'2024-03-10 03:30:00'",
    ),
}  # fmt: skip
NESTED: dict[str, tuple[str, ...]] = {
    "struct": (
        "{c} is null", "{c} = {v}", "{c} <=> {v}", "{c} <> {v}", "{c} in ({v}, null)", "{c}.y like 'a%'",
        "coalesce({c}.x, 0) = 0", "{c}.x + 1 > 1", "({c}).x = 5", "{c} < {v}",
    ),
    "longer struct": ("{c} is null", "{c}.z is null", "{c} <=> {v}", "{c}.z > date'2024-01-01'", "{c}.y like 'a%'"),
    "deep": ("{c}.q is null", "{c}.q.x > 1", "{c}.q.d is not null", "{c} <=> {v}", "{c}.q.x = double('NaN')",
             "{c}.q <=> null"),
    "array": (
        "size({c}) = 1", "array_contains({c}, 5)", "{c}[0] = 1", "try_element_at({c}, 2) is null", "{c} = array(1)",
        "exists({c}, e -> e > 1)", "{c} < {v}", "forall({c}, e -> e is not null)", "{c} is null", "{c}[1] > 0",
    ),
    "map": ("{c}['a'] = 1", "size({c}) = 0", "map_contains_key({c}, 'b')", "{c}['zz'] is null", "{c} is null",
            f"{{c}}[{quoted('it')}] is null"),
}  # fmt: skip
