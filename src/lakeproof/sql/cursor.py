"""Reads the tokens of one statement, and says what it expected and where."""

from __future__ import annotations

import re
from typing import NoReturn

from lakeproof.sql.lexer import Token, error_at, tokens_of
from lakeproof.sql.statements import Literal, PartitionTransform

_END = Token("end", "the end of the statement", 0, 0)
_TIMES = {"years": "year", "months": "month", "days": "day", "hours": "hour", "date": "day", "date_hour": "hour"}


class Cursor:
    """A place in a statement."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, tokens_of(text), 0

    def peek(self, ahead: int = 0) -> Token:
        """The token that comes next, unread."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else _END._replace(start=len(self.text), end=len(self.text))

    def take(self) -> Token:
        """The next token, read."""
        token = self.peek()
        self.at += 1
        return token

    @property
    def done(self) -> bool:
        """Whether everything was read."""
        return self.at >= len(self.tokens)

    def accept(self, *words: str) -> bool:
        """Read these words if they come next, all of them."""
        if all(self.peek(n).is_word(word) for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def accept_mark(self, mark: str) -> bool:
        """Read this mark if it comes next."""
        if self.peek().kind == "mark" and self.peek().value == mark:
            self.at += 1
            return True
        return False

    def expect(self, *words: str) -> None:
        """These words must come."""
        if not self.accept(*words):
            self.fail(f"expected {' '.join(words).upper()}")

    def expect_mark(self, mark: str) -> None:
        """This mark must come."""
        if not self.accept_mark(mark):
            self.fail(f"expected `{mark}`")

    def expect_end(self) -> None:
        """Nothing may come."""
        if not self.done:
            self.fail("did not expect more")

    def until_comma(self) -> str:
        """The text of an expression: up to a comma or a parenthesis that closes around it."""
        start, depth = self.at, 0
        while not self.done:
            token = self.peek()
            if token.kind == "mark":
                if depth == 0 and token.value in (",", ")"):
                    break
                depth += (token.value == "(") - (token.value == ")")
            self.take()
        if self.at == start:
            self.fail("expected a value")
        return self.text[self.tokens[start].start : self.tokens[self.at - 1].end]

    def fail(self, message: str, hint: str = "") -> NoReturn:
        """The statement is wrong here."""
        token = self.peek()
        found = token.value if token.kind == "end" else f"`{self.text[token.start : token.end]}`"
        raise error_at(self.text, token.start, f"{message}, found {found}", hint)

    def word(self) -> str:
        """A name without dots."""
        token = self.peek()
        if token.kind not in ("word", "quoted"):
            self.fail("expected a name")
        return self.take().value

    def name(self) -> str:
        """A name with dots; a part that holds a dot or a backtick keeps its quotes."""
        parts = [self._part()]
        while self.accept_mark("."):
            parts.append(self._part())
        return ".".join(parts)

    def _part(self) -> str:
        part = self.word()
        return "`" + part.replace("`", "``") + "`" if "." in part or "`" in part else part

    def string(self) -> str:
        """A text literal; neighbours are joined."""
        if self.peek().kind != "string":
            self.fail("expected a string")
        parts = []
        while self.peek().kind == "string":
            parts.append(self.take().value)
        return "".join(parts)

    def literal(self) -> Literal:
        """A literal; a typed one such as `timestamp '…'` is its text."""
        token = self.peek()
        if token.kind == "string":
            return self.string()
        if token.is_word("timestamp", "date") and self.peek(1).kind == "string":
            self.take()
            return self.string()
        for word, known in (("true", True), ("false", False), ("null", None)):
            if self.accept(word):
                return known
        negative = self.accept_mark("-")
        value = self._number()
        return -value if negative else value

    def _number(self) -> float | int:
        """A number, with the letter that Spark lets stand behind one."""
        found = re.fullmatch(r"((\d+)|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:[lLsSyYdDfF]|bd|BD)?", self.peek().value)
        if self.peek().kind != "number" or found is None:
            self.fail("expected a literal")
        self.take()
        return int(found[1]) if found[2] else float(found[1])

    def whole_number(self) -> int:
        """A whole number without a sign."""
        if not self.peek().value.isdecimal():
            self.fail("expected a whole number")
        return int(self.take().value)

    def properties(self) -> tuple[tuple[str, str], ...]:
        """`(key 'value', 'key' = 'value', …)`; keys may have dots."""
        self.expect_mark("(")
        found = []
        while True:
            key = self.string() if self.peek().kind == "string" else self.name()
            self.accept_mark("=")
            value = self.literal()
            found.append((key, str(value).lower() if isinstance(value, bool) else str(value)))
            if not self.accept_mark(","):
                break
        self.expect_mark(")")
        return tuple(found)

    def partition_field(self) -> PartitionTransform:
        """A column, or a transform of one: `days(ts)`, `bucket(16, id)`, `truncate(4, s)`."""
        if not (self.peek().kind == "word" and self.peek(1).value == "(" and self.peek(1).kind == "mark"):
            return PartitionTransform(self.name())
        start, transform = self.peek(), self.word().lower()
        self.expect_mark("(")
        arguments: list[str | int] = []
        while not self.accept_mark(")"):
            arguments.append(self.whole_number() if self.peek().kind == "number" else self.name())
            self.accept_mark(",")
        columns = [one for one in arguments if isinstance(one, str)]
        numbers = [one for one in arguments if isinstance(one, int)]
        wide = transform in ("bucket", "truncate")
        if len(columns) != 1 or len(numbers) != (1 if wide else 0):
            raise error_at(self.text, start.start, f"`{transform}` takes one column{' and one number' * wide}")
        return PartitionTransform(
            columns[0], f"{transform}[{numbers[0]}]" if wide else _TIMES.get(transform, transform)
        )

    def balanced(self) -> str:
        """The text of what is in the parentheses that come next, which are read."""
        first = self.peek()
        self.expect_mark("(")
        depth = 1
        while depth:
            if self.done:
                raise error_at(self.text, first.start, "this parenthesis is not closed")
            token = self.take()
            if token.kind == "mark":
                depth += (token.value == "(") - (token.value == ")")
        return self.text[first.end : self.tokens[self.at - 1].start]

    def rest(self) -> str:
        """The text from here to the end."""
        return self.text[self.peek().start :].strip()
