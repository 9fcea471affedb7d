"""JSON that says of which Java class a value is: any number of Catalyst's rows come in one call."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

from lakeproof.spark.jvm import spark41
from lakeproof.spark.jvm.gateway import Gateway

_JACKSON = "com.fasterxml.jackson.databind"


class Long(int):
    """A number that Java must hold as a long, however small it is."""


def json_of(values: Iterable[Any]) -> str:
    """Values of a row as Catalyst holds them: texts, bytes, longs and what JSON knows by itself."""
    return json.dumps([_named(value) for value in values])


def _named(value: Any) -> Any:
    if isinstance(value, Long):
        return ["java.lang.Long", int(value)]
    if isinstance(value, bytes):
        return ["[B", base64.b64encode(value).decode()]
    return [spark41.UTF8_STRING, value] if isinstance(value, str) else value


def read_typed(gateway: Gateway, text: str, kind: Any) -> Any:
    """Java objects from such a text; it is ours, so that any class may be named in it."""
    return gateway.built(text, kind, gateway.once("typed mapper", lambda: _mapper(gateway)))


def _mapper(gateway: Gateway) -> Any:
    anything = gateway.named(f"{_JACKSON}.jsontype.impl.LaissezFaireSubTypeValidator").instance
    of_objects = gateway.enum(f"{_JACKSON}.ObjectMapper$DefaultTyping", "JAVA_LANG_OBJECT")
    in_an_array = gateway.enum("com.fasterxml.jackson.annotation.JsonTypeInfo$As", "WRAPPER_ARRAY")
    return gateway.mapper.copy().activateDefaultTyping(anything, of_objects, in_an_array)
