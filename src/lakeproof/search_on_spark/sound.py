"""Is a checkpoint what was written? Its files have checksums, and what they say has the form that it must have."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lakeproof.errors import InvalidInput, LakeproofError

CHUNK = 1 << 22
MOST_PARTS = 100_000
SUM = "checksum"


def damaged(place: Path, why: object) -> InvalidInput:
    """A file of the checkpoint does not hold what was written."""
    hint = "name a new folder, and the search begins anew"
    return InvalidInput(f"The checkpoint is damaged: {why}", place=str(place), hint=hint)


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Whatever a library stumbles over in a file is said of the checkpoint; a storage's own errors stay."""
    try:
        yield
    except FileNotFoundError:
        raise damaged(place, "it is missing") from None
    except (OSError, MemoryError):
        raise
    except InvalidInput as error:
        raise damaged(place, error.message) from None
    except LakeproofError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise damaged(place, error or type(error).__name__) from None


def checksum_of(path: Path) -> int:
    """A number that changes with any byte of the file."""
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found = zlib.crc32(chunk, found)
    return found


def signed(header: Mapping[str, Any]) -> dict[str, Any]:
    """The header with the checksum of what it says."""
    said = {name: value for name, value in header.items() if name != SUM}
    return {**said, SUM: zlib.crc32(json.dumps(said, sort_keys=True).encode())}


def wrong_in_header(header: dict[str, Any]) -> str:
    """What a header of our format should not say."""
    if signed(header).get(SUM) != header.get(SUM):
        return "its checksum is wrong"
    parts, search = header.get("parts"), header.get("search")
    if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
        return "it does not say how many partitions there are"
    return "" if isinstance(search, str) and search else "the search has no name"


def is_count(value: object) -> bool:
    """Whether this is how many there are of something."""
    return type(value) is int and value >= 0


def are_counts(value: object) -> bool:
    """Whether these are names and how often each was met."""
    return type(value) is Counter and all(isinstance(name, str) and is_count(n) for name, n in value.items())
