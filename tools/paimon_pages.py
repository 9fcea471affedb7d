"""The figures and stories of the Paimon pages: `python -m tools.paimon_pages PAGE…` computes them again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.errors import InvalidInput
from lakeproof.models.paimon import build
from lakeproof.models.paimon.telling import told

BLOCK = re.compile(r"(<!-- paimon: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class Line(NamedTuple):
    """One line of a table: what it shows and its `--set` parameters."""

    what: str
    parameters: str


_UNIVERSAL = "preset=two-compactors compaction=universal lsm-key-range-check=true max-write-ops=3 max-compactions=4"
_OVERWRITES = "preset=two-compactors num-compactors=1 max-write-ops=3"
_ONE_EACH = "preset=two-writers-one-bucket"
TABLES: dict[str, tuple[Line, ...]] = {
    "verdicts": (
        Line("one writer per bucket, PutIfAbsent", "preset=one-writer-per-bucket"),
        Line("the same without deletion vectors", "preset=one-writer-per-bucket dv-enabled=false"),
        Line("the same with streaming-sink updates", "preset=one-writer-per-bucket streaming-sink=true"),
        Line("the same with Paimon's own picks",
             "preset=one-writer-per-bucket compaction=universal lsm-key-range-check=true"),
        Line("the same with a committer apart", "preset=one-writer-per-bucket committer=apart"),
        Line("the same with dedicated compactors", "preset=one-writer-per-bucket compactors=dedicated"),
        Line("one writer per bucket, lock", "preset=one-writer-per-bucket-lock"),
        Line("the same without deletion vectors", "preset=one-writer-per-bucket-lock dv-enabled=false"),
        Line("two writers on a bucket", _ONE_EACH),
        Line("one writer, two compactors", "preset=two-compactors"),
        Line("the same without deletion vectors", "preset=two-compactors dv-enabled=false"),
        Line("neither PutIfAbsent nor lock", "preset=no-put-if-absent"),
        Line("the same with a lock", "preset=no-put-if-absent use-lock=true"),
    ),
    "spec": (
        Line("deletes are lost in a merge", "preset=one-writer-per-bucket as-in-spec=true"),
        Line("only that", "preset=one-writer-per-bucket keep-deletes=false"),
        Line("reads that never consult vectors", "preset=one-writer-per-bucket read-vectors=false"),
        Line("vectors never pruned, one compactor", "preset=two-compactors num-compactors=1 prune-vectors=false"),
        Line("the same, pruned", "preset=two-compactors num-compactors=1"),
        Line("two compactors as in the specification", "preset=two-compactors as-in-spec=true"),
    ),
    "sequence": (
        Line("counters of their own", f"{_ONE_EACH} streaming-sink=true"),
        Line("numbers restored at each write", f"{_ONE_EACH} streaming-sink=true sequence-init=each-write"),
        Line("a sequence field", f"{_ONE_EACH} streaming-sink=true sequence-field=true"),
        Line("a sequence field, a compactor, no deletes",
             f"{_ONE_EACH} streaming-sink=true sequence-field=true num-compactors=1 num-keys=1 allow-deletes=false"),
        Line("a sequence field, a compactor, deletes",
             f"{_ONE_EACH} streaming-sink=true sequence-field=true num-compactors=1 num-keys=1"),
        Line("snapshot-ordered numbers", f"{_ONE_EACH} streaming-sink=true sequence-snapshot-ordering=true"),
        Line("snapshot-ordered numbers, a compactor, deletes",
             f"{_ONE_EACH} streaming-sink=true sequence-snapshot-ordering=true num-compactors=1 num-keys=1 "
             "compactors=dedicated"),
        Line("a sequence field, read-modify-write", f"{_ONE_EACH} sequence-field=true"),
        Line("snapshot-ordered numbers, read-modify-write", f"{_ONE_EACH} sequence-snapshot-ordering=true"),
    ),
    "two-compactors": (
        Line("file-deletion check alone", "preset=two-compactors"),
        Line("with the LSM key-range check", "preset=two-compactors lsm-key-range-check=true"),
        Line("with pypaimon's index check", "preset=two-compactors dv-index-check=true"),
        Line("with the data conflict check on vectors", "preset=two-compactors dv-conflict-check=true"),
        Line("with strict mode", "preset=two-compactors strict-mode=true"),
    ),
    "universal": (
        Line("2 writes, 4 compactions", _UNIVERSAL.replace("max-write-ops=3", "max-write-ops=2")),
        Line("3 writes, 3 compactions", _UNIVERSAL.replace("max-compactions=4", "max-compactions=3")),
        Line("3 writes, 4 compactions", _UNIVERSAL),
        Line("with pypaimon's index check", f"{_UNIVERSAL} dv-index-check=true"),
        Line("with pypaimon's index check, two keys", f"{_UNIVERSAL} dv-index-check=true num-keys=2"),
        Line("with the data conflict check on vectors, two keys", f"{_UNIVERSAL} dv-conflict-check=true num-keys=2"),
        Line("with strict mode, two keys", f"{_UNIVERSAL} strict-mode=true num-keys=2"),
        Line("one compactor, two keys", f"{_UNIVERSAL} num-compactors=1 num-keys=2"),
    ),
    "rollback": (
        Line("row-level commands, no rollback", f"{_OVERWRITES} allow-overwrites=true"),
        Line("with compaction rollback", f"{_OVERWRITES} compaction-rollback=true"),
        Line("and the data conflict check", f"{_OVERWRITES} compaction-rollback=true dv-conflict-check=true"),
    ),
}  # fmt: skip

STORIES: dict[str, tuple[str, str]] = {  # the shortest trace: a property and the parameters
    "dangling": ("no_dangling_deletion_vectors", "preset=two-compactors"),
    "two-rows": ("one_valid_row_per_key", "preset=two-compactors"),
    "lsm": ("one_valid_row_per_key", "preset=two-compactors lsm-key-range-check=true"),
    "survives": ("one_valid_row_per_key", _UNIVERSAL),
    "index-check": ("one_valid_row_per_key", f"{_UNIVERSAL} dv-index-check=true num-keys=2"),
    "two-writers": ("consistent_read", _ONE_EACH),
    "lost-delete": ("consistent_read", "preset=two-compactors num-compactors=1 as-in-spec=true allow-deletes=true"),
    "read-vectors": ("consistent_read", "preset=two-compactors num-compactors=1 read-vectors=false allow-deletes=true"),
    "never-pruned": ("no_dangling_deletion_vectors", "preset=two-compactors num-compactors=1 prune-vectors=false"),
    "reinserted": (
        "one_valid_row_per_key",
        "preset=two-compactors num-compactors=1 as-in-spec=true keep-deletes=true allow-deletes=true max-write-ops=3",
    ),
    "no-guard": ("consistent_read", "preset=no-put-if-absent"),
    "late-row": (
        "consistent_read",
        f"{_ONE_EACH} streaming-sink=true sequence-field=true num-compactors=1 num-keys=1",
    ),
    "rolled-back": ("no_dangling_deletion_vectors", f"{_OVERWRITES} compaction-rollback=true"),
    "only-java": ("some only java refuses", "preset=two-compactors compare-rules=true"),
    "only-pypaimon": ("some only pypaimon refuses", "preset=two-compactors compare-rules=true"),
    "only-pypaimon-universal": ("some only pypaimon refuses", f"{_UNIVERSAL} compare-rules=true"),
}


def checked(parameters: str) -> Verdict:
    """The verdict for parameters written as they are given to `--set`; of equally short traces always the same one."""
    model = build(dict(part.split("=", 1) for part in parameters.split()))
    return check(model, witnesses=True, engine="readable")


def table(lines: Iterable[Line]) -> str:
    """A Markdown table: parameters, states, depth, and what is violated at which depth."""
    rows = ["| configuration | `--set` | states | verdict |", "|---|---|---|---|"]
    for line in lines:
        verdict = checked(line.parameters)
        rows.append(f"| {line.what} | `{line.parameters}` | {verdict.states:,} | {in_words(verdict)} |")
    return "\n".join(rows) + "\n"


def in_words(verdict: Verdict) -> str:
    """'holds', or what is violated and after how many steps."""
    broken = [claim for claim in verdict.properties if claim.kind != "reachable" and claim.verdict == "violated"]
    return "; ".join(f"`{claim.name}` violated at depth {claim.depth}" for claim in broken) or "holds"


def story(name: str) -> str:
    """One shortest trace as a numbered list, and the table at its end."""
    claim, parameters = STORIES[name]
    found = next(one for one in checked(parameters).properties if one.name == claim)
    if found.trace is None:
        raise InvalidInput(f"the story {name!r} has no trace: {claim} is {found.verdict}", place=parameters)
    lines = [f"{number}. {said}" for number, said in enumerate(told(found.trace), 1)]
    return f"`--set {' --set '.join(parameters.split())}`, depth {len(found.trace.steps)}:\n\n" + "\n".join(
        [*lines, "", "```", *last_table(found.trace.steps[-1].state), "```", ""]
    )


def last_table(state: Mapping[str, object]) -> list[str]:
    """The version, the files, the vectors and the rows of the buckets that have any."""
    lines = [f"Version: {state['version']}"]
    for bucket in state.values():
        if isinstance(bucket, dict) and bucket.get("files"):
            lines += [f"File ids: {', '.join(bucket['files'])}", f"Vectors: {bucket['vectors'] or 'none'}", "Rows:"]
            lines += [f"  {row}" for row in bucket["rows"]]
    expected = state["expected"]
    assert isinstance(expected, dict)
    return [*lines, "Expected: " + ", ".join(f"{key}: {value}" for key, value in expected.items())]


def renewed(page: str) -> str:
    """The page with every block between `<!-- paimon: NAME -->` and `<!-- end -->` computed again."""

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        content = table(TABLES[name]) if name in TABLES else story(name.removeprefix("story-"))
        return f"{found[1]}{content}{found[3]}"

    return BLOCK.sub(block, page)


def main(paths: list[str]) -> None:
    """Renew the pages, or print the table of verdicts."""
    for path in map(Path, paths):
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
    if not paths:
        print(table(TABLES["verdicts"]))


if __name__ == "__main__":
    main(sys.argv[1:])
