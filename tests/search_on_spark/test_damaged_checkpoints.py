"""A checkpoint that was damaged, or that somebody made up, ends in a sentence or in the right verdict.

`LAKEPROOF_CHECKPOINTS` is the number of mutations, `LAKEPROOF_CHECKPOINTS_SEED` the first of their seeds.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import toys
from workers_here import Here, by_parts, facts

from lakeproof.checker.readable import Counts
from lakeproof.errors import InvalidInput
from lakeproof.search_on_spark.folder import Folder, Found, done_in
from lakeproof.search_on_spark.packing import pack, with_checksum
from lakeproof.search_on_spark.sound import signed

MUTATIONS = int(os.environ.get("LAKEPROOF_CHECKPOINTS", "60"))
SEED = int(os.environ.get("LAKEPROOF_CHECKPOINTS_SEED", "1"))
MODEL = toys.letters()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a search that was cut, so that somebody must read its states to go on."""
    folder = tmp_path_factory.mktemp("whole")
    by_parts(MODEL, checkpoint=str(folder), max_states=15)
    assert len(list(folder.glob("level-*"))) > 2
    return folder


@pytest.fixture
def there(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "there", symlinks=True))


EXPECTED = facts(by_parts(MODEL))


def ends(folder: Path) -> str:
    """How the search goes on: as it should, or in what sentence."""
    try:
        found = facts(by_parts(MODEL, checkpoint=str(folder), cluster=Here(forgetful=True)))
    except InvalidInput as error:
        return error.message
    assert found == EXPECTED
    return "goes on"


def mutated(content: bytes, chance: Random) -> bytes:
    """The content with one thing wrong."""
    at = chance.randrange(len(content))
    return chance.choice(
        [
            content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :],
            content[:at],
            b"",
            content[:at] + chance.randbytes(chance.randint(1, 8)) + content[at:],
            content[:at] + content[at + chance.randint(1, 8) :],
        ]
    )


@pytest.mark.parametrize("portion", range(5))
def test_a_damaged_file_is_named_or_does_no_harm(whole: Path, tmp_path: Path, portion: int) -> None:
    found = Counter[str]()
    for number in range(portion, MUTATIONS, 5):
        chance = Random(SEED * 1_000_003 + number)
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder, symlinks=True)
        file = chance.choice(sorted(path for path in folder.rglob("*") if path.is_file()))
        if chance.random() < 0.2:
            file.unlink()
        else:
            file.write_bytes(mutated(file.read_bytes(), chance))
        found[ends(folder).partition(":")[0]] += 1
        shutil.rmtree(folder)
    told = {"The checkpoint is damaged", "The checkpoint cannot be read", "The checkpoint is of another search"}
    assert set(found) <= told | {"goes on", "The checkpoint folder holds something else"}
    assert found["The checkpoint is damaged"]


def test_a_lost_folder_is_not_taken_for_one_without_states(there: Path) -> None:
    assert ends(there) == "goes on"
    shutil.rmtree(there / "level-00002")
    assert ends(there).startswith("The checkpoint is damaged: it is missing")


def test_folders_that_changed_places_are_seen(there: Path) -> None:
    one, other = there / "level-00001/part-000", there / "level-00001/part-001"
    one.rename(there / "aside")
    other.rename(one)
    (there / "aside").rename(other)
    assert ends(there) == "The checkpoint is damaged: it was another folder"


@pytest.mark.parametrize("changed", [{"parts": 2}, {"search": "another"}, {"parameters": {"a": "b"}}])
def test_a_header_that_was_written_over_is_seen(there: Path, changed: dict[str, Any]) -> None:
    header = json.loads((there / "search.json").read_text())
    (there / "search.json").write_text(json.dumps({**header, **changed}))
    assert ends(there) == "The checkpoint is damaged: its checksum is wrong"


@pytest.mark.parametrize("parts", [0, -1, True, "3", None, 3.0, 10**9, [3]])
def test_a_header_of_somebody_else_is_refused(there: Path, parts: object) -> None:
    header = json.loads((there / "search.json").read_text())
    (there / "search.json").write_text(json.dumps(signed({**header, "parts": parts})))
    assert ends(there) == "The checkpoint is damaged: it does not say how many partitions there are"


@pytest.mark.parametrize("text", ["[" * 100_000, "null", "[]", "3", "\x00", '{"format": 2}'])
def test_a_header_that_is_none_is_refused(there: Path, text: str) -> None:
    (there / "search.json").write_text(text)
    assert ends(there).startswith("The checkpoint ")


FOUND = Found(1, ("a",), (1, 2), None, 0)


@pytest.mark.parametrize(
    "crafted",
    [
        {"states": -1},
        {"states": "5"},
        {"transitions": True},
        {"counts": None},
        {"counts": Counts(Counter(a=1), Counter({1: 1}), Counter())},  # type: ignore[dict-item]
        {"counts": Counts({"a": 1}, Counter(), Counter())},  # type: ignore[arg-type]
        {"found": [FOUND]},
        {"found": {"nobody says so": FOUND}},
        {"found": {"nobody says so": None}},
        {"found": {"twice": FOUND._replace(shared=[])}},
        {"found": {"twice": FOUND._replace(owns=(1,))}},
        {"found": {"twice": FOUND._replace(move=("a", "b"))}},  # type: ignore[arg-type]
        {"worker": 7},
        {"files": {"values.parquet": "no"}},
        {"files": None},
    ],
)
def test_counts_and_findings_of_somebody_else_are_refused(there: Path, crafted: dict[str, Any]) -> None:
    part = Folder(str(there)).part(1, 0)
    (part / "done.packed").write_bytes(with_checksum(pack(done_in(part)._replace(**crafted))))
    assert ends(there).startswith("The checkpoint is damaged: ")


def test_a_pickle_of_somebody_else_runs_nothing(there: Path, tmp_path: Path) -> None:
    part = Folder(str(there)).part(1, 0)
    program = f"cos\nsystem\n(S'touch {tmp_path / 'ran'}'\ntR.".encode()
    (part / "done.packed").write_bytes(with_checksum(program))
    assert ends(there) == "The checkpoint is damaged: `os.system` is not a class that only holds fields"
    assert not (tmp_path / "ran").exists()
