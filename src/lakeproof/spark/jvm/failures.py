"""Spark's exceptions as errors of ours: one sentence, the place marked where the text is known, no stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lakeproof.errors import FULL_DISK, MAKE_ROOM, InvalidInput, LakeproofError, Unavailable
from lakeproof.spark.jvm.gateway import Gateway
from lakeproof.sql.lexer import mark_place

_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?)(?: SQLSTATE: \w+)?\s*$", re.MULTILINE)
_NULL = re.compile(r"\[NOT_NULL_ASSERT_VIOLATION\][^:]*:\s*(.*?)\s*If the schema", re.DOTALL)
_GONE = re.compile(
    r"FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.? File"
    r"|java\.io\.FileNotFoundException: File (\S+) does not exist"
)
_FULL = re.compile(r"No space left on device|Disk quota exceeded|\(File too large\)")
_POSITION = re.compile(r"line (\d+),? pos(ition)? (\d+)")
_CALLED = re.compile(r"An error occurred while calling \S+?\.(?: Trace:)?\n(?:: )?(.+)")  # py4j; then Java's own words
_CONDITION = re.compile(r"\[([A-Z_.]+)\]\s*(.*?)(?:\s*SQLSTATE: \w+|\n\n|$)", re.DOTALL)


@contextmanager
def translate_spark_errors(gateway: Gateway, text: str = "") -> Iterator[None]:
    """What Spark raises inside leaves as an error of ours; `text` is the statement, to mark a place in it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        if "raised by the Python Proxy" in str(error):
            raise  # a callback broke in a way that nobody foresaw: that is our mistake, not the user's
        raise spoken_error(gateway, error, text) from error


def spoken_error(gateway: Gateway, error: Exception, text: str = "") -> LakeproofError:
    """The error of ours that an exception of Spark's stands for."""
    own = gateway.recovered(error)
    if own is not None:
        return own
    told = str(error)
    raised = _RAISED.search(told)
    if raised:
        return InvalidInput(raised.group(1), hint="nothing was written")
    if gone := _GONE.search(told):
        return InvalidInput(
            f"a file that the query reads is gone: {gone[1] or gone[2]}",
            hint="if its snapshot was expired meanwhile, run the query again: it reads the newest",
        )
    if _FULL.search(told):
        return Unavailable(FULL_DISK, hint=MAKE_ROOM)
    if "StackOverflowError" in told:
        return InvalidInput("the statement is nested too deeply", hint="write it with fewer parentheses or subqueries")
    null = _NULL.search(told)
    if null:
        return InvalidInput(f"column {null.group(1)} may not be null", hint="nothing was written")
    position = _POSITION.search(told)
    place = ""
    if position and text:
        line, column = int(position[1]), int(position[3]) - bool(position[2])  # a position counts from one
        place = mark_place(text, sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column)
    message, hint = _sentences(told, error)
    return InvalidInput(message, place=place, hint=hint)


def _sentences(told: str, error: Exception) -> tuple[str, str]:
    """What is wrong, and the hint after it, as Spark words them without its error codes, plans and stack traces."""
    found = _CONDITION.search(told)
    if found:
        said = found.group(2)
    else:
        called = _CALLED.match(told)
        told = f"Spark failed, {called[1]}" if called else told
        lines = [line for line in told.splitlines() if line.strip() and not line.startswith(("\tat ", "Traceback"))]
        said = lines[0] if lines else type(error).__name__
    said = " ".join(re.split(r"; line \d+ pos \d+|;\n", said)[0].split())  # then come the place and the plan
    said = said.replace("the table ``", "the table")  # Spark's rules for assignments know no name
    said = re.sub(r", found: '?[A-Z]\w+ .*", "", said)  # a node of the plan
    first, rest = _first_sentence(said)
    hint = "" if rest.startswith("Verify the spelling") else rest
    return first.rstrip(".:"), hint[:300]


def _first_sentence(said: str) -> tuple[str, str]:
    """The first sentence and the rest; what stands in quotes, such as a type with fields, ends none."""
    for end in re.finditer(r"[.:?] (?=[A-Z])", said):
        if said.count('"', 0, end.start()) % 2 == 0:
            return said[: end.start() + 1], said[end.end() :]
    return said, ""
