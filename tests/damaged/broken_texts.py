"""Texts that people and programs write, broken at random, through everything here that reads them.

A reader gives a value, or says in one sentence what is wrong. Nothing else may leave it, and it may not take seconds.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from damage import odd_document

from lakeproof.checker.verdicts.trace import from_itf
from lakeproof.commit.policy_text import policy_from_text
from lakeproof.errors import CommitConflict, CommitUnknown, LakeproofError
from lakeproof.jobs.from_dbt import jobs_text
from lakeproof.jobs.reading import read_jobs
from lakeproof.jobs.text import taken_apart
from lakeproof.models.cases import case_from_text
from lakeproof.scenarios.text import parse_scenario
from lakeproof.sql import parse_all, parse_statement
from lakeproof.sql.column_aliases import with_aliases_inside
from lakeproof.sql.parser import asks_for_management, target, with_views_quoted
from lakeproof.sql.predicates import predicate_from_text
from lakeproof.sql.reading_jobs import read_statement

ROOT = Path(__file__).resolve().parents[2]
SLOWEST_S = 10.0
LONGEST_SENTENCE = 1200  # a text of a thousand characters may be quoted
_TOKEN = re.compile(r"\s+|\w+|'(?:[^'\\]|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|[^\w\s]")
ODDITIES = (
    *"'\"`()[]{}<>,;.\\\0\n\t@#$?é𝒯\u202e\ufeff\ud800",
    *("--", "/*", "*/", "::", "=>", "->", ":x", "${x}", "%s", "'\\", "'''", "in ()"),
    *("null", "not", "select", "from", "where", "and", "between", "interval", "cast(", "array<", "map<struct<"),
    *("0", "-1", "1e999", "9" * 400, "9223372036854775808", "0x", "1.2.3", "1e", "date '2024-13-45'", "timestamp 'x'"),
    *("(" * 300, "not " * 200, "x." * 200),
)
TABLES = {
    "t": {"id": ("int", "id"), "v": ("int", "v"), "s": ("string", "s"), "d": ("date", "d"), "c": ("double", "c")},
    "people": {"id": ("int", "id"), "name": ("string", "name"), "color": ("string", "color")},
}


class Reader(NamedTuple):
    """Something that reads a text: what kind of text, and the call."""

    kind: str
    name: str
    read: Callable[[str], Any]


class Fall(NamedTuple):
    """A text that was answered neither by a value nor by a sentence."""

    reader: str
    text: str
    what: str


READERS = (
    Reader("statement", "parse_statement", parse_statement),
    Reader("statement", "parse_all", parse_all),
    Reader("statement", "target", target),
    Reader("statement", "asks_for_management", asks_for_management),
    Reader("statement", "with_views_quoted", with_views_quoted),
    Reader("statement", "with_aliases_inside", with_aliases_inside),
    Reader("statement", "predicate_from_text", predicate_from_text),
    Reader("statement", "read_statement", lambda text: read_statement(text, TABLES)),
    Reader("scenario", "parse_scenario", lambda text: parse_scenario(text, name="it")),
    Reader("jobs", "read_jobs", lambda text: read_jobs(taken_apart(text, name="it"))),
    Reader("policy", "policy_from_text", lambda text: policy_from_text(text, place="it")),
    Reader(
        "case",
        "case_from_text",
        lambda text: [case_from_text(text, place="it").subject(control=c) for c in (False, True)],
    ),
    Reader("trace", "from_itf", from_itf),
    Reader("manifest of dbt", "jobs_text", lambda text: jobs_text(json.loads(text), place="it")),
)
DOCUMENTS = ("trace", "manifest of dbt")
FILES = ("scenario", "jobs", "policy", "case", "trace", "manifest of dbt")


class Corpus:
    """Good texts of every kind, from which broken ones are made."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {
            "statement": list(_statements()),
            "scenario": _read("tests/scenarios", "*.txt"),
            "jobs": [*_read("examples", "*.sql"), *_read("tests/jobs/data", "*.sql")],
            "policy": [*_read("examples/engines", "*.toml"), POLICY],
            "case": _read("examples/cases", "*.toml"),
            "trace": [TRACE],
            "manifest of dbt": [_small_manifest()],
        }
        self.pieces = {kind: [_TOKEN.findall(text) for text in texts] for kind, texts in self.texts.items()}

    def broken(self, kind: str, chance: Random) -> str:
        """One text of that kind, broken in a few places."""
        if kind in DOCUMENTS and chance.random() < 0.6:
            return json.dumps(odd_document(json.loads(chance.choice(self.texts[kind])), chance))
        pieces = list(chance.choice(self.pieces[kind]))
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            self._break(pieces, kind, chance)
        return "".join(pieces)

    def _break(self, pieces: list[str], kind: str, chance: Random) -> None:
        if not pieces:
            pieces.append(chance.choice(ODDITIES))
            return
        at, other = chance.randrange(len(pieces)), chance.randrange(len(pieces))
        match chance.randrange(9):
            case 0:
                del pieces[at : at + chance.choice((1, 1, 2, 5))]
            case 1:
                pieces[at], pieces[other] = pieces[other], pieces[at]
            case 2:
                pieces.insert(at, pieces[other])
            case 3 | 4:
                pieces.insert(at, chance.choice(ODDITIES))
            case 5:
                pieces[at] = chance.choice(ODDITIES)
            case 6:
                del pieces[at:]
            case 7:
                donor = chance.choice(self.pieces[kind])
                start = chance.randrange(len(donor) + 1)
                pieces[at:other] = donor[start : start + chance.randrange(12)]
            case 8:
                word = pieces[at]
                cut = chance.randrange(len(word) + 1)
                pieces[at] = (
                    word[:cut] + chance.choice(("", "x", "'", "\\", chr(chance.randrange(1, 0x2FFF)))) + word[cut + 1 :]
                )


def fallen(reader: Reader, text: str) -> Fall | None:
    """What is wrong with how a text was answered."""
    started = time.perf_counter()
    try:
        reader.read(text)
        wrong = ""
    except LakeproofError as error:
        wrong = not_a_sentence(error)
    except json.JSONDecodeError:
        wrong = "" if reader.kind == "manifest of dbt" else "a raw JSONDecodeError"  # whoever calls it reads the JSON
    except BaseException as error:  # also a panic of a library
        if isinstance(error, KeyboardInterrupt):
            raise
        wrong = f"raw {type(error).__name__}: {str(error)[:200]}"
    seconds = time.perf_counter() - started
    if seconds > SLOWEST_S:
        wrong = f"it took {seconds:.0f} s"
    return Fall(reader.name, text, wrong) if wrong else None


def not_a_sentence(error: LakeproofError) -> str:
    """Why what an error says is no sentence; nothing, if it is one."""
    message = str(getattr(error, "message", None) or error)
    if not message.strip():
        return f"an empty {type(error).__name__}"
    if "\n" in message and not isinstance(error, CommitConflict | CommitUnknown):  # these explain, line by line
        return f"several lines: {message[:200]!r}"
    if len(message) > LONGEST_SENTENCE:
        return f"{len(message)} characters: {message[:200]!r}"
    return f"code in the sentence: {message[:200]!r}" if "Traceback (most recent" in message else ""


def falls(kinds: tuple[str, ...], count: int, seed: int) -> Iterator[Fall]:
    """What falls of so many broken texts."""
    corpus, chance = Corpus(), Random(seed)
    readers = [reader for reader in READERS if reader.kind in kinds]
    for number in range(count):
        reader = readers[number % len(readers)]
        found = fallen(reader, corpus.broken(reader.kind, chance))
        if found is not None:
            yield found


def _read(folder: str, pattern: str) -> list[str]:
    return [path.read_text() for path in sorted((ROOT / folder).rglob(pattern))]


def _statements() -> Iterator[str]:
    for line in (ROOT / "tests/iceberg_sql/statements.txt").read_text().splitlines():
        text = re.sub(r"^\s*(\d+ )?", "", line)
        if not text.startswith(("==", "look", "conf", "py")):
            yield text
    for text in _read("examples", "*.sql"):
        yield from (each for each in text.split(";") if each.strip())
    yield from PREDICATES


def _small_manifest() -> str:
    manifest = json.loads((ROOT / "tests/jobs/data/dbt_manifest.json").read_text())
    return json.dumps(manifest)[:40_000] if len(str(manifest)) > 200_000 else json.dumps(manifest, indent=1)


PREDICATES = (
    "a = 1 and (b <> 'x' or not c in (1, 2, 3))",
    "s like 'a%' and d between date '2024-01-01' and date '2024-02-01' and n is not null",
    "update t set v = v + 1, s = upper(s) where id in (select id from people where color = 'red')",
    "merge into t using (select 1 as id, 2 as v) s on t.id = s.id when matched and s.v > 1 then update set v = s.v "
    "when matched then delete when not matched then insert (id, v) values (s.id, s.v)",
    "delete from t where exists (select 1 from people p where p.id = t.id) and c < 1.5e3",
    "insert into t select id, count(*), max(s), cast('2024-01-01' as date), 1.0 from t where v > 2 group by id",
    "insert overwrite t select * from t where case when v > 1 then true else false end",
    "call system.rewrite_data_files(table => 't', strategy => 'sort', sort_order => 'id desc', where => 'id > 3')",
)
POLICY = """base = "iceberg-spark"
name = "ours"
carries_deletes = true

[[line]]
commands = ["DELETE", "UPDATE"]
mode = "merge-on-read"
always = ["data_files_exist", "no_new_delete_files"]
serializable = ["added_data_files"]
"""
TRACE = json.dumps(
    {
        "#meta": {"format": "ITF", "model": "iceberg", "parameters": {"num-writers": 2, "preset": "undelete"}},
        "vars": ["actor", "step", "state"],
        "states": [
            {"#meta": {"index": 0}, "state": {"table": {"#tup": [1, {"#bigint": "3"}]}, "rows": {"#set": []}}},
            {"#meta": {"index": 1}, "actor": "w1", "step": "scan", "state": {"table": {"#map": [[1, 2]]}}},
        ],
    }
)
