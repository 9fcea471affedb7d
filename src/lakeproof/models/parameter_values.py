"""Values of `--set name=value`, checked: what cannot be is refused with one sentence, its place and a hint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from lakeproof.errors import InvalidInput

NAMES = ("jack", "sarah", "john", "mary", "paul", "lucy", "adam", "ruth")
"""What keys are called when only their number is given."""

MOST_DIGITS, MOST_SHOWN = 6, 60
MOST_PROCESSES = 64  # of one kind: no search ever ends with more
"""Of a number; characters of a wrong value that are shown."""


class Parameter(NamedTuple):
    """One `--set name=value`: the kind of its values, its default, and what it says."""

    kind: str  # "count", "switch", "names", or the choices with | between them
    default: str  # "": worked out from the others, as the help says
    help: str

    def __str__(self) -> str:
        return f"{self.help} ({self.kind}{', default ' + self.default if self.default else ''})"


class Parameters(NamedTuple):
    """What can be set of a model: its parameters, its presets, and other names that parameters go by."""

    model: str
    known: Mapping[str, Parameter]
    presets: Mapping[str, Mapping[str, str]]
    aliases: Mapping[str, str] = {}

    def given(self, words: Mapping[str, str], also: Callable[[str], object] = lambda name: False) -> dict[str, str]:
        """The words under their own names, on top of those of the preset that they pick; `also` knows more names."""
        words = {self.aliases.get(name, name): value for name, value in words.items()}
        preset = words.pop("preset", "")
        if preset and preset not in self.presets:
            raise unknown(self.model, "preset", preset, self.presets, place=f"--set preset={preset}")
        found = {**self.presets.get(preset, {}), **words}
        for name, value in found.items():
            if name not in self.known and not also(name):
                raise unknown(self.model, "parameter", name, (*self.known, "preset"), place=f"--set {name}={value}")
        return found

    def values(self, given: Mapping[str, str]) -> dict[str, str]:
        """Every parameter with what was given, or its default."""
        return {name: given.get(name, what.default) for name, what in self.known.items()}

    def help(self) -> dict[str, str]:
        """What each parameter says, with its values and its default."""
        return {name: str(what) for name, what in self.known.items()}


def count(name: str, value: str, least: int = 0, most: int | None = None) -> int:
    """A number from `least` on, up to `most` if that is given."""
    is_number = value.isdecimal() and len(value) <= MOST_DIGITS
    is_too_large = is_number and most is not None and int(value) > most
    if not is_number or int(value) < least or is_too_large:
        wanted = f"up to {most}" if is_too_large else f"from {least} on"
        raise InvalidInput(
            f"{name} takes a number {wanted}, not {value[:MOST_SHOWN]!r}",
            place=f"--set {name}={value[:MOST_SHOWN]}",
            hint=f"for example {name}={max(least, 2)}",
        )
    return int(value)


def switch(name: str, value: str) -> bool:
    """true or false."""
    return choice(name, value.lower(), ["true", "false"]) == "true"


def choice(name: str, value: str, choices: list[str]) -> str:
    """One of these words."""
    if value not in choices:
        near = get_close_matches(value, choices, n=1) or choices[:1]
        raise InvalidInput(
            f"{name} is {' or '.join(choices)}, not {value!r}",
            place=f"--set {name}={value}",
            hint=f"did you mean {name}={near[0]}?",
        )
    return value


def names(name: str, value: str, example: str = "jack,sarah") -> tuple[str, ...]:
    """Different names with commas between them."""
    found = tuple(part.strip() for part in value.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise InvalidInput(
            f"{name} takes different names with commas between them, not {value!r}",
            place=f"--set {name}={value}",
            hint=f"for example {name}={example}",
        )
    return found


def unknown(model: str, what: str, name: str, known: Iterable[str], *, place: str) -> InvalidInput:
    """The error for a name that the model does not have."""
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return InvalidInput(f"the {model} model has no {what} {name!r}", place=place, hint=hint)
