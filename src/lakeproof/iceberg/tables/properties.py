"""Table properties whose values have a meaning here: checked where they are set, not where they are first needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from lakeproof.commit import Isolation, Mode
from lakeproof.commit.policy import POLICIES
from lakeproof.errors import InvalidInput

_COMMANDS = ("delete", "update", "merge")
_PARTS = ("", *(f"{command}." for command in _COMMANDS))


def _one_of(*choices: str) -> Callable[[str], str]:
    return lambda value: "" if value in choices else f"one of {', '.join(choices)}"


def _whole_number(value: str) -> str:
    return "" if value.isascii() and value.isdigit() else "a whole number"


def _bytes(value: str) -> str:
    return "" if not _whole_number(value) and 1024 <= int(value) < 1 << 31 else "a number of bytes, 1024 or more"


def _count(value: str) -> str:
    return "" if not _whole_number(value) and 1 <= int(value) < 1 << 31 else "a whole number, 1 or more"


def _flag(value: str) -> str:
    return "" if value.lower() in ("true", "false") else "true or false"


def _metrics(value: str) -> str:
    found = re.fullmatch(r"none|counts|full|truncate\((\d+)\)", value.strip(), re.IGNORECASE)
    good = found is not None and found[1] != "0"
    return "" if good else "none, counts, full or truncate(N)"


def _only(*choices: str) -> Callable[[str], str]:
    """A property of which nothing here honours another value."""
    said = f"left out, or {' or '.join(choices)}: no other is honoured"
    return lambda value: "" if value.lower() in choices else said


def _nothing(value: str) -> str:
    return "left out: nothing here honours it"


def _zstd_level(value: str) -> str:
    return "" if re.fullmatch(r"[1-9]|1\d|2[0-2]", value) else "a level of zstd, from 1 to 22"


def _share(value: str) -> str:
    return "" if re.fullmatch(r"0?\.\d*[1-9]\d*", value) else "a number between 0 and 1"


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
            "history.expire.max-ref-age-ms",
            "commit.manifest.min-count-to-merge",
            "commit.manifest.target-size-bytes",
        ),
        _whole_number,
    ),
    **dict.fromkeys(
        (
            "write.metadata.delete-after-commit.enabled",
            "write.wap.enabled",
            "write.spark.accept-any-schema",
            "write.spark.fanout.enabled",
            "commit.manifest-merge.enabled",
            "gc.enabled",
        ),
        _flag,
    ),
    **dict.fromkeys(
        (
            "write.parquet.row-group-size-bytes",
            "write.parquet.page-size-bytes",
            "write.parquet.dict-size-bytes",
            "write.parquet.bloom-filter-max-bytes",
        ),
        _bytes,
    ),
    "write.parquet.page-row-limit": _count,
    **{f"write.{part}distribution-mode": _one_of("none", "hash", "range") for part in _PARTS},
    "write.parquet.compression-codec": _one_of("zstd", "snappy", "gzip", "lz4", "uncompressed"),
    "write.parquet.compression-level": _zstd_level,
    "write.delete.granularity": _one_of("file", "partition"),
    "write.metadata.metrics.default": _metrics,
    "write.object-storage.enabled": _only("false"),
    "write.location-provider.impl": _nothing,
    "write.py-location-provider.impl": _nothing,
    "encryption.key-id": _nothing,
    "write.format.default": _one_of("parquet", "orc", "avro"),
    "lakeproof.policy": _one_of(*POLICIES),
}

_OF_A_COLUMN: dict[str, Callable[[str], str]] = {
    "write.metadata.metrics.column.": _metrics,
    "write.parquet.bloom-filter-enabled.column.": _flag,
    "write.parquet.bloom-filter-fpp.column.": _share,
    "write.parquet.bloom-filter-ndv.column.": _count,
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
        of_a_column = (check for begins, check in _OF_A_COLUMN.items() if name.startswith(begins))
        check = _KNOWN.get(name) or next(of_a_column, None)
        wanted = check(value) if check else ""
        if wanted:
            raise InvalidInput(f"the property {name} cannot be {value!r}", place=place, hint=f"it must be {wanted}")
