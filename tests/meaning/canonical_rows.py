"""Rows as text that tells apart what Spark tells apart, whatever the time zone of the reader."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import types as t

Row = tuple[str | None, ...]


def canonical(rows: DataFrame, *, zeros_alike: bool = False) -> list[Row]:
    """The rows as sorted tuples of text; `zeros_alike`: -0.0 is written as 0.0, which Spark calls equal."""
    kinds = [field.dataType for field in rows.schema.fields]
    named = rows.toDF(*[f"c{number}" for number in range(len(kinds))])
    texts = [text_of(f"c{number}", kind, zeros_alike) for number, kind in enumerate(kinds)]
    found = named.selectExpr(*texts).collect() if kinds else []
    return sorted((tuple(row) for row in found), key=repr)


def text_of(value: str, kind: t.DataType, zeros_alike: bool = False, depth: int = 0) -> str:
    """An expression that writes a value of the type as text (null stays null)."""
    match kind:
        case t.StructType():
            parts = [_or_null(text_of(f"{value}.`{f.name}`", f.dataType, zeros_alike, depth)) for f in kind.fields]
            return f"if({value} is null, null, concat('{{', {', '.join(_between(parts))}, '}}'))"
        case t.ArrayType():
            each = text_of(f"e{depth}", kind.elementType, zeros_alike, depth + 1)
            return f"concat('[', array_join(transform({value}, e{depth} -> {_or_null(each)}), ', '), ']')"
        case t.MapType():
            entry = t.StructType().add("key", kind.keyType).add("value", kind.valueType)
            each = text_of(f"e{depth}", entry, zeros_alike, depth + 1)
            return (
                f"concat('<', array_join(array_sort(transform(map_entries({value}), e{depth} -> {each})), ', '), '>')"
            )
        case t.BinaryType():
            return f"concat('0x', hex({value}))"
        case t.TimestampType():
            return f"cast(unix_micros({value}) as string)"
        case t.FloatType() | t.DoubleType():
            return f"cast({value}{f' + cast(0 as {kind.simpleString()})' if zeros_alike else ''} as string)"
        case t.StringType():
            return value
    return f"cast({value} as string)"


def _or_null(text: str) -> str:
    return f"coalesce({text}, 'null')"


def _between(parts: list[str]) -> list[str]:
    return [one for number, part in enumerate(parts) for one in ([part] if number == 0 else ["', '", part])]
