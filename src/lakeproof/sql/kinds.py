"""Kinds of values, and how SQL makes two of one kind before it compares them.

Kinds: int, double, decimal(p,s), string, date, timestamp, boolean, null, free (a source's column before anything says
its type), and other (arrays, maps, structs, binary), of which nothing is known.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from lakeproof.format import Value

_WORDS = {
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "integer": "int",
    "bigint": "int",
    "long": "int",
    "float": "double",
    "real": "double",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamp",
    "boolean": "boolean",
}
_NUMBERS = ("int", "double", "decimal")


def kind_of(type_text: str) -> str:
    """The kind of a column by its type in CREATE TABLE.

    >>> kind_of("DECIMAL(9, 2)"), kind_of("varchar(10)"), kind_of("array<int>")
    ('decimal(9,2)', 'string', 'other')
    """
    text = type_text.lower().replace(" ", "")
    word = re.split(r"[(<]", text)[0]
    if word in ("decimal", "dec", "numeric"):
        numbers = re.findall(r"\d+", text)
        return f"decimal({numbers[0] if numbers else 10},{numbers[1] if len(numbers) > 1 else 0})"
    if word in ("varchar", "char"):
        return "string"
    return _WORDS.get(word, "other")


def base(kind: str) -> str:
    """The kind without precision and scale."""
    return kind.partition("(")[0]


def scale(kind: str) -> int:
    """How many digits a decimal has behind the point."""
    return int(kind.rstrip(")").split(",")[1])


def comparable(left: str, right: str) -> bool:
    """Whether values of the two kinds compare as they are."""
    if base(left) in _NUMBERS and base(right) in _NUMBERS:
        return True
    return left == right or {left, right} <= {"date", "timestamp"}


def converted(value: Value, kind: str) -> Value | None:
    """The value as one of this kind, or `None` where that would lose something or is not known."""
    match base(kind):
        case "int":
            return _whole(value)
        case "double":
            return _double(value)
        case "decimal":
            return _decimal(value, scale(kind))
        case "string":
            return value if isinstance(value, str) else None
        case "date":
            return _date(value)
        case "timestamp":
            return _timestamp(value)
        case "boolean":
            return value if isinstance(value, bool) else None
    return None


def _whole(value: Value) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        return int(value) if value == int(value) else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        return int(value)
    return None


def _double(value: Value) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        made = float(str(value).replace("_", "?"))
    except (ValueError, OverflowError):
        return None
    return made if math.isfinite(made) else None


def _decimal(value: Value, digits: int) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    try:
        made = Decimal(str(value).replace("_", "?"))
        exact = made.quantize(Decimal(1).scaleb(-digits))
    except InvalidOperation:
        return None
    return exact if exact == made else None


def _date(value: Value) -> date | None:
    if isinstance(value, datetime):
        midnight = value == datetime(value.year, value.month, value.day)
        return value.date() if midnight else None
    if isinstance(value, date):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.strip()):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            return None
    return None


def _timestamp(value: Value) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        try:
            made = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return made if made.tzinfo is None else None
    return None
