"""SQL text as words with their places: enough to tell statements apart and to point at a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lakeproof.errors import InvalidInput

_PIECES = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<word>[^\W\d][\w$]*)
      | (?P<unclosed>'|"|`|/\*)
      | (?P<mark>=>|<=|>=|<>|!=|\|\||::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b"}


class Token(NamedTuple):
    """One piece of a text: `kind` is word, quoted, string, number or mark; `value` is what it stands for."""

    kind: str
    value: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of these keywords, in any case."""
        return self.kind == "word" and self.value.lower() in words


class Piece(NamedTuple):
    """One statement of a text: verbatim, without leading comments and the semicolon, and where it begins."""

    text: str
    start: int


def tokens_of(text: str) -> list[Token]:
    """The pieces of the text without blanks and comments."""
    return list(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for found in _PIECES.finditer(text):
        kind, raw = str(found.lastgroup), found.group()
        if kind == "unclosed":
            what = "comment" if raw == "/*" else "name" if raw == "`" else "string"
            raise error_at(text, found.start(), f"this {what} is not closed")
        if kind != "space":
            yield Token(kind, _value(kind, raw), found.start(), found.end())


def _value(kind: str, raw: str) -> str:
    if kind == "quoted":
        return raw[1:-1].replace("``", "`")
    if kind == "string":
        if raw[0] in "rR":
            return raw[2:-1]
        quote, inside = raw[0], raw[1:-1]
        unescaped = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), inside, flags=re.DOTALL)
        return unescaped.replace(quote * 2, quote)
    return raw


def split(text: str) -> list[Piece]:
    """The statements of a text; `;` between them.

    >>> [piece.text for piece in split("select ';' ; -- done\\nselect 2;")]
    ["select ';'", 'select 2']
    """
    pieces, first, last = [], None, 0
    for token in tokens_of(text):
        if token.kind == "mark" and token.value == ";":
            if first is not None:
                pieces.append(Piece(text[first:last], first))
            first = None
            continue
        first = token.start if first is None else first
        last = token.end
    if first is not None:
        pieces.append(Piece(text[first:last], first))
    return pieces


def error_at(text: str, offset: int, message: str, hint: str = "") -> InvalidInput:
    """An error whose place is marked below the line of text; what it quotes of the text may hold line breaks."""
    return InvalidInput(" ".join(message.splitlines()), place=mark_place(text, offset), hint=hint)


def mark_place(text: str, offset: int) -> str:
    """`line 1, column 8` with the line and a mark below the place."""
    offset = min(offset, len(text))
    before = text[:offset]
    line_number, line_start = before.count("\n") + 1, before.rfind("\n") + 1
    line = text[line_start:].split("\n", 1)[0]
    column = offset - line_start
    shown = f"{line}\n        {' ' * column}^"
    return f"line {line_number}, column {column + 1}\n        {shown}"
