"""How we stand on the list: every answer of ours beside the recorded one of Apache Iceberg.

`python tests/iceberg_sql/standing.py [chapter ...]` runs the list on a session of ours and prints what differs;
`… standing.py record` runs it on Apache Iceberg and writes `expected.json` (it fetches the jar); `… standing.py write`
runs ours and writes `standing.json`, of which `make docs` makes the page of statements.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from comparing import EXPECTED, STANDING, Judged, comparable, judge, read_expected, read_reasons
from statement_list import Step, read_chapters

import lakeproof

SCRIPT = Path(__file__).with_name("run_statements.py")
VERDICTS = ("equal", "beyond", "differs", "refused", "raw")


def answers_of(engine: str, chapters: Sequence[str] = ()) -> dict[str, Any]:
    """The answers of an engine, which runs in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.json"
        command = [sys.executable, str(SCRIPT), engine, str(file), *chapters]
        where = {**os.environ, "PYTHONPATH": str(Path(lakeproof.__file__).parents[1])}  # the same source as here
        done = subprocess.run(command, cwd=SCRIPT.parent, env=where, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{engine} did not run the list:\n{done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def recordable(answers: dict[str, Any]) -> dict[str, Any]:
    """The answers of Apache Iceberg as they are kept: by number, without what differs from run to run."""
    failed = [text for text in answers if text.startswith("set-up ")]
    if failed:
        raise RuntimeError(f"set-up failed on Apache Iceberg: {failed[0]}: {answers[failed[0]]['error']}")
    return {number: comparable(answer) for number, answer in answers.items() if number.isdigit()}


def cases(chapters: Sequence[str] = ()) -> list[tuple[str, Step]]:
    """The cases of these chapters (none: of all), each with its chapter."""
    return [(one.name, case) for one in read_chapters() if not chapters or one.name in chapters for case in one.cases]


def judged(answers: dict[str, Any], chapters: Sequence[str] = (), *, sample: bool = False) -> dict[int, Judged]:
    """The verdict on every case of these chapters; in a sample, on those that were asked."""
    expected = read_expected()
    found = {}
    for _, case in cases(chapters):
        assert case.number is not None
        if sample and str(case.number) not in answers:
            continue
        answer = answers.get(str(case.number), {"error": "no answer", "kind": "raw"})
        found[case.number] = judge(expected[str(case.number)], answer)
    return found


def unexplained(found: dict[int, Judged]) -> dict[int, Judged]:
    """The cases that are not equal and for which no reason is given, and all raw errors."""
    reasons = read_reasons()
    return {
        number: one
        for number, one in found.items()
        if one.verdict == "raw" or (one.verdict != "equal" and number not in reasons)
    }


def told(found: dict[int, Judged], chapters: Sequence[str] = ()) -> str:
    """The standing as text: a line for every case that is not equal, and the counts."""
    reasons = read_reasons()
    lines = []
    for chapter, case in cases(chapters):
        one = found.get(case.number or 0)
        if one is not None and one.verdict != "equal":
            mark = "" if case.number in reasons else "  NO REASON GIVEN"
            lines += [
                f"{case.number:5} {one.verdict:8} {chapter}: {case.text[:140]}{mark}",
                f"               {one.seen}",
            ]
    counts = Counter(one.verdict for one in found.values())
    return "\n".join([*lines, ", ".join(f"{counts[name]} {name}" for name in VERDICTS) + f" of {len(found)}"])


def by_line(cases: Mapping[str, Any]) -> str:
    """JSON with a case a line, in order."""
    lines = [f'"{number}": {json.dumps(cases[number], sort_keys=True)}' for number in sorted(cases, key=int)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def worth_keeping(found: dict[int, Judged]) -> dict[str, list[str]]:
    """The verdicts, with the sentence of every refusal, as they are kept: without what differs from run to run."""
    told = {number: one.seen if one.verdict in ("refused", "raw") else "" for number, one in found.items()}
    said = {number: one.says or told[number] for number, one in found.items()}
    return {str(number): [one.verdict, said[number]] for number, one in sorted(found.items())}


def main(arguments: list[str]) -> None:
    """Record, or say how we stand."""
    if arguments == ["write"]:
        answers = answers_of("lakeproof")
        found = judged(answers)
        for text in answers:
            if text.startswith("set-up ") or (text.startswith("audit ") and answers[text]["found"]):
                print(text, answers[text])
        STANDING.write_text(by_line(worth_keeping(found)))
        print(told(found))
        return
    if arguments == ["record"]:
        recorded = recordable(answers_of("apache-iceberg"))
        EXPECTED.write_text(by_line(recorded))
        ran = sum(answer != "refused" for answer in recorded.values())
        print(f"recorded {len(recorded)} answers, {ran} of them rows")
        return
    answers = answers_of("lakeproof", arguments)
    for text in answers:
        if text.startswith("set-up "):
            print(text, answers[text]["error"])
    print(told(judged(answers, arguments), arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
