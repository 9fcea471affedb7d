"""Table properties whose values have a meaning here: checked where they are set, not where they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakeproof.commit import Isolation, Mode
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput

_COMMANDS = ("delete", "update", "merge")


def _one_of(*choices: str) -> Callable[[str], str]:
    return lambda value: "" if value in choices else f"one of {', '.join(choices)}"


def _whole_number(value: str) -> str:
    return "" if value.isascii() and value.isdigit() else "a whole number"


def _flag(value: str) -> str:
    return "" if value.lower() in ("true", "false") else "true or false"


_KNOWN: dict[str, Callable[[str], str]] = {
    **{f"write.{command}.mode": _one_of(*Mode) for command in _COMMANDS},
    **{f"write.{command}.isolation-level": _one_of(*Isolation) for command in (*_COMMANDS, "insert")},
    **dict.fromkeys(
        (
            "commit.retry.num-retries",
            "commit.retry.min-wait-ms",
            "commit.retry.max-wait-ms",
            "commit.retry.total-timeout-ms",
            "lakeproof.max-reruns",
            "write.target-file-size-bytes",
            "write.metadata.previous-versions-max",
            "history.expire.max-snapshot-age-ms",
            "history.expire.min-snapshots-to-keep",
        ),
        _whole_number,
    ),
    "write.metadata.delete-after-commit.enabled": _flag,
    "write.wap.enabled": _flag,
    "write.format.default": _one_of("parquet", "orc", "avro"),
    "lakeproof.policy": _one_of(*POLICIES),
}


def whole_number(properties: Mapping[str, str], name: str, default: int) -> int:
    """The number that a property says; another engine may have written anything there."""
    said = properties.get(name)
    if said is None:
        return default
    try:
        return int(said)
    except ValueError:
        hint = "set it to a whole number, or unset it"
        raise InvalidInput(f"the table's property {name} is {said[:40]!r}, not a number", hint=hint) from None


def check_properties(properties: Mapping[str, str], place: str) -> None:
    """Refuse a value that nothing could honour later."""
    for name, value in properties.items():
        wanted = _KNOWN[name](value) if name in _KNOWN else ""
        if wanted:
            raise InvalidInput(f"the property {name} cannot be {value!r}", place=place, hint=f"it must be {wanted}")
