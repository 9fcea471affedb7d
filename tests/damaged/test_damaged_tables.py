"""A damaged file ends in one sentence, not in a wrong answer: hundreds of mutations of every kind of file.

`LAKEPROOF_MUTATIONS` says how many (300 by default), `LAKEPROOF_MUTATION_SEED` which. They run in processes of their
own, so that a crash of a decoder is seen, and names its mutation; `python tests/damaged/broken_tables.py SEED FIRST
LAST` runs them again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broken_tables import ALWAYS as SELECT_AND_AUDIT
from broken_tables import Asked, Tables, answered, forget, new_tables

from lakeproof.errors import InvalidInput
from lakeproof.iceberg.failures import reading_file
from lakeproof.iceberg.reading.avro import read_header

MUTATIONS = int(os.environ.get("LAKEPROOF_MUTATIONS", "300"))
SEED = int(os.environ.get("LAKEPROOF_MUTATION_SEED", "20"))
PARTS = 4 if MUTATIONS > 1000 else 1  # each is a process of its own, and makes its tables
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tables() -> Iterator[Tables]:
    with new_tables() as made:
        yield made


def mutated(seed: int, first: int, last: int) -> list[dict[str, Any]]:
    """What a process of its own tells about these mutations."""
    folders = [str(HERE), *(str(HERE.parent / name) for name in ("iceberg", "simulation")), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "broken_tables.py"), *map(str, (seed, first, last))],
        env={**os.environ, "PYTHONPATH": ":".join(folders)},
        capture_output=True,
        timeout=60 + 20 * (last - first),
        text=True,
        check=False,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (told[-1:], done.stderr[-2000:])
    assert told[-1] == {"reached": last}
    return [line for line in told if "reached" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_mutation_ends_in_anything_but_an_answer_or_a_sentence(part: int) -> None:
    each = MUTATIONS // PARTS
    found = mutated(SEED, part * each, (part + 1) * each)
    print(f"{each} mutations of seed {SEED} from {part * each} on: {len(found)} fell")
    assert found == []


def suffixes(tables: Tables) -> set[str]:
    return {path.name.partition(".")[2] if path.suffix == ".json" else path.suffix for path in tables.named}


def test_every_kind_of_file_is_mutated(tables: Tables) -> None:
    assert suffixes(tables) == {"metadata.json", ".avro", ".parquet", ".puffin"}
    assert len(tables.named) > 10


@pytest.mark.parametrize("suffix", [".avro", ".json"])
def test_a_file_that_was_cut_names_itself(tables: Tables, suffix: str) -> None:
    select = SELECT_AND_AUDIT[0]
    for path in (each for each in tables.named if each.suffix == suffix):
        tables.restore()
        path.write_bytes(tables.sound[path][:-20])
        forget()
        with pytest.raises(InvalidInput) as raised:
            select.ask(tables, path)
        assert path.name in raised.value.place, path
        assert "audit" in raised.value.hint
    tables.restore()


def test_a_manifest_of_another_length_is_damaged_though_it_decodes(tables: Tables) -> None:
    """A planted error of this oracle: bytes after the last block are read by no decoder."""
    path = next(each for each in tables.named if each.name.endswith("-m0.avro"))
    tables.restore()
    longer = tables.sound[path]
    path.write_bytes(longer + longer[-30:])
    forget()
    answer, wrong = answered(SELECT_AND_AUDIT[0], tables, path)
    assert (answer, wrong) == (None, "")
    tables.restore()


@pytest.mark.parametrize("number", [0, 2, 3, 100, 101, 102, 103, 104, 134])
def test_a_manifest_whose_schema_lost_a_field_is_damaged(tables: Tables, number: int) -> None:
    """One flipped bit makes another field id of it, and everything else decodes."""
    path = next(each for each in tables.named if each.name.endswith("-m0.avro"))
    tables.restore()
    sound, said = tables.sound[path], f'"field-id": {number},'.encode()
    said = said if said in sound else f'"field-id": {number}}}'.encode()
    assert said in sound
    path.write_bytes(sound.replace(said, said.replace(str(number).encode(), b"9" * len(str(number)))))
    forget()
    for asked in SELECT_AND_AUDIT:
        answer, wrong = answered(asked, tables, path)
        assert wrong == ""
        assert answer is None or "unreadable_manifest" in answer
    tables.restore()


@pytest.mark.parametrize("size", [b"\x01", b"\x0d", b"\xff\xff\xff\x0f"], ids=["-1", "-7", "beyond the end"])
def test_a_header_that_leads_back_ends(size: bytes) -> None:
    """Read as it says, a size below zero went round in circles for hours."""
    with pytest.raises(ValueError, match="damaged"):
        read_header(b"Obj\x01" + b"\xfe\xff\xff\xff\xff\x0f" + size + b"\0" * 100)


def test_an_error_of_the_storage_is_no_damage() -> None:
    with pytest.raises(FileNotFoundError), reading_file("x"):
        raise FileNotFoundError("x")
    with pytest.raises(PermissionError), reading_file("x"):
        raise PermissionError(13, "x")
    with pytest.raises(InvalidInput, match="damaged: 7"), reading_file("x"):
        raise KeyError(7)


def test_the_judge_sees_a_raw_error_a_hang_and_two_lines(tables: Tables) -> None:
    def raw(*_: Any) -> Any:
        raise KeyError("nothing")

    def lines(*_: Any) -> Any:
        raise InvalidInput("one\ntwo")

    assert answered(Asked("raw", raw), tables, tables.named[0])[1].startswith("raw KeyError")
    assert answered(Asked("lines", lines), tables, tables.named[0])[1].startswith("several lines")
