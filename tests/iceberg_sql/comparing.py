"""Two engines' answers to one statement, made comparable: what no two runs have in common stands there as a word.

Names of files, ids of snapshots (told by their order), times of the run and sizes in bytes are such. Columns, types and
every other value must be the same; rows may come in any order.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
EXPECTED, REASONS, STANDING = HERE / "expected.json", HERE / "differences.txt", HERE / "standing.json"
_SIZES = {
    *("file_size_in_bytes", "total_data_file_size_in_bytes", "column_sizes", "column_size", "length", "split_offsets"),
    *("rewritten_bytes_count", "added_bytes_count", "plan", "sort_order_id"),
}
_SUMMARY = re.compile(
    r"(added|deleted|removed|total)-.*(?<!size)$|changed-partition-count|replace-partitions|wap\.id|k"
)
_FILES = (
    (re.compile(r"(file:/*)?{warehouse}/*"), "{warehouse}/"),
    (re.compile(r"[\w=./%-]*\.parquet"), "{file}.parquet"),
    (re.compile(r"\d{5}-[0-9a-f-]+(\.gz)?\.metadata\.json(\.gz)?"), "{metadata}.json"),
    (re.compile(r"[\w{} -]+\.stats\b"), "{statistics}.stats"),
    (re.compile(r"(, \d){16,19}(?=, ,)"), ", {id}"),  # an id whose digits stand alone
    (re.compile(r"copy-table-staging-[0-9a-f-]+"), "copy-table-staging-{id}"),
    (re.compile(r"snap-[\w{}-]+\.avro"), "{list}.avro"),
    (re.compile(r"[\w-]+-m\d+\.avro"), "{manifest}.avro"),
)
_TIME = re.compile(r"20(2[6-9]|[3-8]\d)-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
_CATALOG = re.compile(r"\b(lakeproof|spark_catalog)\b(?!\.created)")  # the one that each engine's session is in
_APPLICATION = re.compile(r"^local-\d+$")
_CODES = re.compile(r"^\[[A-Z_0-9.]+\] | SQLSTATE: .*$")
_2020_MS = 1_577_836_800_000
_ID = re.compile(r"\b\d{16,19}\b")


class Judged(NamedTuple):
    """How an answer compares: `equal`, `beyond`, `differs`, `refused`, `raw`; what was seen, and what ours says."""

    verdict: str
    seen: str = ""
    says: str = ""


def comparable(answer: dict[str, Any]) -> Any:
    """The answer without what differs from run to run."""
    if "error" in answer:
        return "refused"
    ids = answer.get("ids", {})
    found = {"columns": [[_name(name), kind] for name, kind in answer["columns"]]}
    names = [name for name, _ in answer["columns"]]
    rows = [
        [_plain(value, names[at] if at < len(names) else "", ids) for at, value in enumerate(row)]
        for row in answer["rows"]
    ]
    found["rows"] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
    looks = answer.get("looks")
    return found | ({"looks": [comparable({**look, "ids": ids}) for look in looks]} if looks else {})


def _name(name: str) -> str:
    return "{expression}" if name.startswith("static_invoke(") else name


def _plain(value: Any, name: str, ids: dict[str, str]) -> Any:
    if name in _SIZES:
        return None if value is None else f"{{{name}}}"
    if name == "summary" and isinstance(value, dict):
        return {key: _plain(each, key, ids) for key, each in value.items() if _SUMMARY.fullmatch(key)}
    if isinstance(value, dict):
        return {key: _plain(each, key, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, "", ids) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**15:
        return ids.get(str(value), "{id}")
    if name == "timestamp" and isinstance(value, int) and value > _2020_MS:
        return "{time}"
    if isinstance(value, str):
        for pattern, word in _FILES:
            value = pattern.sub(word, value)
        value = _TIME.sub("{time}", _CATALOG.sub("{catalog}", _APPLICATION.sub("{application}", value)))
        return _ID.sub(lambda found: ids.get(found[0], "{id}"), value)
    return value


def judge(expected: Any, answer: dict[str, Any]) -> Judged:
    """The answer of ours, compared with the recorded one of Apache Iceberg (already comparable).

    In a sample not every case is followed by looks: what was not looked at is not compared.
    """
    if "error" in answer:
        if answer["kind"] == "raw":
            return Judged("raw", answer["error"])
        said = _CODES.sub("", _plain(answer["error"], "", answer.get("ids", {})).partition(": ")[2]).strip()
        return Judged("equal" if expected == "refused" else "refused", answer["error"], said)
    ours = json.loads(json.dumps(comparable(answer)))
    if expected == "refused":
        return Judged("beyond", json.dumps(ours)[:300])
    if "looks" not in ours:
        expected = {part: value for part, value in expected.items() if part != "looks"}
    for at, (name, _) in enumerate(expected["columns"]):
        if name == "{expression}" and at < len(ours["columns"]):
            ours["columns"][at][0] = name
    return Judged("equal") if ours == expected else Judged("differs", _difference(expected, ours))


def _difference(expected: Any, ours: Any) -> str:
    for part in ("columns", "rows", "looks"):
        theirs, mine = expected.get(part), ours.get(part)
        if theirs != mine:
            only = (
                [each for each in theirs or [] if each not in (mine or [])],
                [each for each in mine or [] if each not in (theirs or [])],
            )
            return f"{part}: Apache {json.dumps(only[0])[:300]} ours {json.dumps(only[1])[:300]}"
    return ""


def read_expected() -> dict[str, Any]:
    """The recorded answers by the number of the statement."""
    found: dict[str, Any] = json.loads(EXPECTED.read_text())
    return found


def read_reasons() -> dict[int, str]:
    """Why an answer is another one, or none, by the number of the statement."""
    lines = [line.split(None, 1) for line in REASONS.read_text().splitlines() if line.strip() and line[0] != "#"]
    return {int(number): reason for number, reason in lines}
