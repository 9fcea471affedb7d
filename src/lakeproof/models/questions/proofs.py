"""What is proven without a bound on writers, commands and compactions: a list of configurations, each a line of a page.

Every line is one writer against anybody, or writers that never stop. `slow` ones take more than a few seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lakeproof.checker.search import check
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.checks import (
    ROW_CHECKS,
    WINDOW_CHECKS,
    delete_files_fit_format_version,
    missing_delete_paths,
    row_ids_given,
    whole_files_match,
)
from lakeproof.commit.policy import POLICIES
from lakeproof.models.iceberg import build
from lakeproof.models.iceberg.anybody import EQUALITY, WAYS
from lakeproof.models.iceberg.bounds import AFTER_UPGRADE

_ANYBODY = {"others": "anybody", "num-keys": "2", "predicates": "id"}
_COPIES = {"update-mode": "copy-on-write", "delete-mode": "copy-on-write"}
_MIXED = {"update-mode": "copy-on-write"}
_SERIALIZABLE = {"isolation": "serializable"}
_ENDLESS = {"max-write-ops": "unbounded", "max-compactions": "unbounded"}


class Proof(NamedTuple):
    """One configuration: what it is about, its parameters, its policy, and the check that is switched off."""

    about: str
    parameters: Mapping[str, str]
    policy: str = "lakeproof"
    without: str = ""
    slow: bool = False

    @property
    def command(self) -> str:
        """What prints this line; nothing prints one with a check switched off but a policy file."""
        words = [f"--set {name}={value}" for name, value in self.parameters.items()]
        return " ".join([*words, *([f"--policy {self.policy}"] if self.policy != "lakeproof" else [])])


_MODES: Mapping[str, Mapping[str, str]] = {
    "merge-on-read": {},
    "copy-on-write": _COPIES,
    "UPDATE copies, DELETE does not": _MIXED,
}


def _usual(also: str = "", *, slow: bool = False, **more: str) -> list[Proof]:
    """All modes at both levels of isolation."""
    found = []
    for mode, set_mode in _MODES.items():
        for isolation in ("snapshot", "serializable"):
            changed = {name.replace("_", "-"): value for name, value in more.items()}
            parameters = {**_ANYBODY, **set_mode, "isolation": isolation, **changed}
            found.append(Proof(f"{mode}, {isolation}{also}", parameters, slow=slow))
    return found


AGAINST_ANYBODY = (
    *_usual(),
    *_usual(", predicates on any column", slow=True, predicates="any"),
)
THREE_IDS = tuple(_usual(", 3 ids", slow=True, num_keys="3"))
"""The same with one id more: up to two minutes each."""
_EVERY_WAY = ",".join(way for way in WAYS if way != EQUALITY)
_BY_VALUE = {**_ANYBODY, "max-compactions": "0", "others-may": "merge-on-read,copy-on-write,equality-deletes"}
_ALL_AT_ONCE = "all of it at once: every way but by value, vectors, five commands and INSERT … SELECT, lost answers"
_TWO_ROWS = {"max-rows": "2"}
_PARTITIONED = {"partitioned": "true"}
_UPGRADED = {"format-version": "3", "row-ids": AFTER_UPGRADE, "initial": "two-files"}
_TOGETHER = {
    "commands": "insert,update,delete,merge,delete-exists,insert-select",
    "others-may": _EVERY_WAY,
    "format-version": "3",
    "unknown-outcomes": "true",
}
_ALL_COMMANDS = {"commands": "insert,update,delete,merge,delete-exists"}
EXTENSIONS = (
    Proof("others drop and overwrite whole files", {**_ANYBODY, "others-may": "merge-on-read,overwrite"}),
    Proof("others write deletes that nobody can read", {**_ANYBODY, "others-may": "merge-on-read,unreadable-deletes"}),
    Proof("others expire snapshots", {**_ANYBODY, "others-may": "merge-on-read,compaction,expiry"}),
    Proof("others delete by value", _BY_VALUE),
    Proof("others delete by value, copy-on-write, serializable", {**_BY_VALUE, **_SERIALIZABLE, **_COPIES}),
    Proof("others do all of this but delete by value", {**_ANYBODY, "others-may": _EVERY_WAY}),
    Proof("deletion vectors", {**_ANYBODY, "format-version": "3"}),
    Proof("an upgraded table, whose rows get their ids with the next commit", {**_ANYBODY, **_UPGRADED}),
    Proof("a partitioned table", {**_ANYBODY, **_PARTITIONED}),
    Proof("a partitioned table, serializable", {**_ANYBODY, **_PARTITIONED, **_SERIALIZABLE}),
    Proof("MERGE, 1 id", {**_ANYBODY, "num-keys": "1", "commands": "insert,merge"}),
    Proof("MERGE, at most 2 rows", {**_ANYBODY, **_TWO_ROWS, "commands": "insert,merge"}),
    Proof("MERGE, at most 3 rows", {**_ANYBODY, "max-rows": "3", "commands": "insert,merge"}, slow=True),
    Proof("MERGE, serializable", {**_ANYBODY, **_SERIALIZABLE, "commands": "insert,merge"}),
    Proof("DELETE with a subquery", {**_ANYBODY, "commands": "insert,delete-exists"}),
    Proof("DELETE with a subquery, serializable", {**_ANYBODY, **_SERIALIZABLE, "commands": "insert,delete-exists"}),
    Proof(
        "INSERT … SELECT, serializable, 1 id",
        {**_ANYBODY, **_SERIALIZABLE, "num-keys": "1", "commands": "insert,insert-select"},
    ),
    Proof("INSERT … SELECT", {**_ANYBODY, "commands": "insert,insert-select"}, slow=True),
    Proof(
        "INSERT … SELECT, serializable", {**_ANYBODY, **_SERIALIZABLE, "commands": "insert,insert-select"}, slow=True
    ),
    Proof("INSERT OVERWRITE beside DELETE, 1 id", {**_ANYBODY, "num-keys": "1", "commands": "overwrite,delete"}),
    Proof(
        "INSERT OVERWRITE beside DELETE, at most 2 rows",
        {**_ANYBODY, **_TWO_ROWS, "commands": "overwrite,delete"},
        slow=True,
    ),
    Proof(
        "INSERT OVERWRITE beside DELETE, at most 2 rows, serializable",
        {**_ANYBODY, **_TWO_ROWS, **_SERIALIZABLE, "commands": "overwrite,delete"},
    ),
    Proof(
        "INSERT OVERWRITE of a partition beside DELETE, at most 2 rows",
        {**_ANYBODY, **_TWO_ROWS, **_PARTITIONED, "commands": "overwrite-partition,delete"},
    ),
    Proof(
        "answers get lost, requests come late, 1 id",
        {**_ANYBODY, "num-keys": "1", "max-compactions": "0", "unknown-outcomes": "true"},
    ),
    Proof("answers get lost, requests come late", {**_ANYBODY, "unknown-outcomes": "true"}, slow=True),
    Proof(
        "answers get lost, requests come late, serializable",
        {**_ANYBODY, **_SERIALIZABLE, "unknown-outcomes": "true"},
        slow=True,
    ),
    Proof(
        "every way but by value, vectors, MERGE and subqueries, serializable",
        {**_ANYBODY, **_SERIALIZABLE, **_ALL_COMMANDS, "others-may": _EVERY_WAY, "format-version": "3"},
    ),
    *(
        Proof(f"{_ALL_AT_ONCE}, {level}", {**_ANYBODY, **_TWO_ROWS, "isolation": level, **_TOGETHER}, slow=True)
        for level in ("snapshot", "serializable")
    ),
    Proof(
        f"{_ALL_AT_ONCE}, snapshot, a partitioned table",
        {**_ANYBODY, **_TWO_ROWS, "isolation": "snapshot", **_TOGETHER, **_PARTITIONED},
        slow=True,
    ),
    Proof(
        "every way, vectors, MERGE and subqueries, copy-on-write, serializable, no compactions of one's own",
        {
            **_BY_VALUE,
            **_SERIALIZABLE,
            **_COPIES,
            **_ALL_COMMANDS,
            "others-may": ",".join(WAYS),
            "format-version": "3",
        },
    ),
)
OTHER_POLICIES = (
    Proof("Apache Iceberg on Spark, as it is", _ANYBODY, "iceberg-spark"),
    Proof("the same with the fix", _ANYBODY, "iceberg-spark-fixed"),
    Proof("PyIceberg", _ANYBODY, "pyiceberg"),
)
_WHERE_A_CHECK_IS_MISSED: tuple[dict[str, str], ...] = (
    _ANYBODY,
    {**_ANYBODY, **_MIXED},
    {**_ANYBODY, **_SERIALIZABLE},
    {**_ANYBODY, **_SERIALIZABLE, "commands": "insert,delete-exists"},
    {**_ANYBODY, "num-keys": "1", "others-may": "merge-on-read,expiry"},
    {**_ANYBODY, **_UPGRADED, "num-keys": "1"},
)
NECESSITY = tuple(
    Proof(f"without `{check}`", parameters, without=check)
    for check, parameters in zip(
        (*ROW_CHECKS, *WINDOW_CHECKS, row_ids_given.__name__), _WHERE_A_CHECK_IS_MISSED, strict=True
    )
)
NOT_MISSED: Mapping[str, str] = {
    whole_files_match.__name__: "it asks of files that a command drops by a filter whether the filter fits them whole; "
    "the partitions of this model hold one value each, so every file fits whole or not at all",
    delete_files_fit_format_version.__name__: "it asks of the writer's delete files whether the format has such; "
    "the format of a table does not change in this model",
    missing_delete_paths.__name__: "it asks of a rewrite of delete files, which needs names by age",
}
"""The checks of `lakeproof` without which nobody goes wrong here, and why."""
ENDLESS_WRITERS = (
    Proof("2 writers, 1 id, snapshot", {**_ENDLESS, "num-keys": "1"}),
    Proof("3 writers, 1 id, snapshot", {**_ENDLESS, "num-keys": "1", "num-writers": "3"}),
    Proof("2 writers, 1 id, serializable", {**_ENDLESS, **_SERIALIZABLE, "num-keys": "1"}),
    Proof("2 writers, 1 id, snapshot, Spark as it is", {**_ENDLESS, "num-keys": "1"}, "iceberg-spark"),
    Proof("2 writers, 2 ids, snapshot", {**_ENDLESS, "num-keys": "2"}, slow=True),
)
ALL = {
    "One `lakeproof` writer against anybody": AGAINST_ANYBODY,
    "The same with three ids": THREE_IDS,
    "The same with two ids, and one thing more": EXTENSIONS,
    "Other policies against anybody": OTHER_POLICIES,
    "`lakeproof` with one check switched off, against anybody": NECESSITY,
    "Writers that never stop": ENDLESS_WRITERS,
}


def prove(proof: Proof) -> Verdict:
    """The verdict on one line."""
    policy = POLICIES[proof.policy]
    return check(build(proof.parameters, policy.without(proof.without) if proof.without else policy))


def said_of(found: Verdict) -> str:
    """What a line says of a verdict: the first violation, and what was never reached."""
    worst = found.first_violation
    said = found.verdict if worst is None else f"violates `{worst.name}` after {worst.depth} steps"
    return f"{said}; never reached: {', '.join(found.unreached)}" if found.unreached else said
