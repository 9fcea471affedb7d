"""Every commit rule built slightly wrong is caught by the shipped model, and the right one holds at the same bounds.

A variant breaks the shipped rule itself: a policy flag, a function of `commit/`, or the one step of the model that
obeys it. The bounds are two writers, two rows, and never more commands than the counterexample needs.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from iceberg_runs import LAKEPROOF, READS, forget_everything, holds, searched, violated

from in_part import in_part
from lakeproof.checker.model import Outcome, Step
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit import rows, validation, window
from lakeproof.commit.attempt import Happened
from lakeproof.commit.change import Command
from lakeproof.commit.policy import Policy, Stamp
from lakeproof.commit.validation import CommitWith
from lakeproof.filters import matching
from lakeproof.format import Operation
from lakeproof.format.rows import RowMapping
from lakeproof.models import iceberg
from lakeproof.models.iceberg import calls, steps
from lakeproof.models.iceberg.world import Op, Shared, Writer

new_snapshot = import_module("lakeproof.commit.snapshots")  # the package gives the function of that name
BOUNDS = {"num_keys": 2, "initial": "one-file", "duplicates": True, "measure_aborts": False, "lean": False}
BASIC = "insert,update,delete"
BY_AGE = {"names": "by-age"}
UPSERTS = {"commands": "insert,update,delete,upsert"}
COW_UPDATES = {"update_mode": "copy-on-write"}
Break = Callable[[pytest.MonkeyPatch], Policy | None]
"""Breaks a rule; the policy with which the broken rule is run, `None`: the shipped one."""


@pytest.fixture(autouse=True)
def _no_answer_outlives_its_rule() -> Iterator[None]:
    forget_everything()
    yield
    forget_everything()


def _change_step(
    patch: pytest.MonkeyPatch, name: str, change: Callable[[Writer, Shared, Op, Outcome], Outcome]
) -> None:
    """The model's step of that name leads elsewhere."""
    right = iceberg.steps_of

    def changed(writer: Writer, step: Step) -> Step:
        def run(shared: Any, own: Any) -> list[Outcome]:
            return [change(writer, shared, own, outcome) for outcome in step.run(shared, own)]

        return step._replace(run=run, reads_shared=True) if step.name == name else step

    patch.setattr(iceberg, "steps_of", lambda writer: tuple(changed(writer, step) for step in right(writer)))


# ---------------------------------------------------------------- rows that somebody else wrote


def no_update_distinction(patch: pytest.MonkeyPatch) -> None:
    """A DELETE takes an update of its row for a delete."""
    patch.setattr(rows, "_missed", lambda *_: None)


def update_vs_delete(patch: pytest.MonkeyPatch) -> None:
    """An UPDATE takes a delete of its row for agreement."""
    right = rows.target_conflict
    patch.setattr(rows, "target_conflict", lambda change, fates, at: right(change, fates._replace(deleted=()), at))


def r2_off(patch: pytest.MonkeyPatch) -> Policy:
    """Serializable commands ignore new rows."""
    return LAKEPROOF.without("new_rows_match")


def r2_appends_only(patch: pytest.MonkeyPatch) -> None:
    """Serializable commands see the new rows of appends alone."""
    right = rows.fresh_rows

    def fresh_rows(change: Any, snapshot: Any, by: Any, shape: Any) -> Any:
        return right(change, snapshot, by, shape) if snapshot.operation is Operation.APPEND else []

    patch.setattr(rows, "fresh_rows", fresh_rows)


def reads_off(patch: pytest.MonkeyPatch) -> Policy:
    """Serializable commands ignore changes of rows that they read and do not write."""
    return LAKEPROOF.without("rows_read")


def rerun_keep_files(patch: pytest.MonkeyPatch) -> None:
    """A command that runs again plans its deletes again but commits the data files of its first run."""
    right = steps.planned_again

    def again(writer: Any, shared: Any, own: Any, answer: Any) -> Any:
        plan = right(writer, shared, own, answer)
        kept = own.change.added_data_files
        if plan is None or [len(f.rows or ()) for f in kept] != [
            len(f.rows or ()) for f in plan.change.added_data_files
        ]:
            return plan  # other rows than before: even a sloppy writer would notice
        return plan._replace(change=plan.change._replace(added_data_files=kept))

    patch.setattr(steps, "planned_again", again)


# ---------------------------------------------------------------- deletes that a rewrite must carry over


def no_carry(patch: pytest.MonkeyPatch) -> Policy:
    """A rewrite forgets the deletes that came meanwhile."""
    return replace(LAKEPROOF, carries_deletes=False)


def _prepared_once(patch: pytest.MonkeyPatch, field: str) -> None:
    """Validation remembers this part of its first answer (behind a bar in the group's name), and the swap uses it."""
    right = calls.answered

    def answered(writer: Writer, shared: Shared, op: Op) -> Any:
        answer = right(writer, shared, op)
        if "|" not in op.group or not isinstance(answer, CommitWith):
            return answer
        return answer._replace(**{field: literal_eval(op.group.split("|")[1])})

    def remembering(writer: Writer, shared: Shared, own: Op, outcome: Outcome) -> Outcome:
        answer = right(writer, shared, own)
        if "|" in own.group or not isinstance(answer, CommitWith):
            return outcome
        seen: Any = outcome.own
        return outcome._replace(own=seen._replace(group=f"{own.group}|{getattr(answer, field)!r}"))

    patch.setattr(calls, "answered", answered)
    _change_step(patch, "validate", remembering)


def carry_once(patch: pytest.MonkeyPatch) -> None:
    """What is carried over is found by the first validation and never again."""
    _prepared_once(patch, "carried")


def remap_once(patch: pytest.MonkeyPatch) -> None:
    """Where the deleted rows are is found by the first validation and never again."""
    _prepared_once(patch, "positions")


def _unshifted(mapping: RowMapping) -> RowMapping:
    """The mapping (one move per row, as in the model) with every row at its old position, if the file is that long."""
    size = {move.new_file: sum(m.new_file == move.new_file for m in mapping) for move in mapping}
    old = [move.rows.bit_length() - 1 for move in mapping]
    return tuple(m._replace(start=p) if p < size[m.new_file] else m for m, p in zip(mapping, old, strict=True))


def carry_no_shift(patch: pytest.MonkeyPatch) -> None:
    """Carried deletes keep their positions though the rows moved."""
    right = rows._carried
    patch.setattr(
        rows,
        "_carried",
        lambda change, carried, by: right(change._replace(mapping=_unshifted(change.mapping or ())), carried, by),
    )


def remap_no_shift(patch: pytest.MonkeyPatch) -> None:
    """A row that moved is looked for at its old position in the new file."""
    right = rows.walked
    patch.setattr(
        rows, "walked", lambda held, by: right(held, by._replace(mapping=by.mapping and _unshifted(by.mapping)))
    )


def remap_no_walk(patch: pytest.MonkeyPatch) -> None:
    """A compaction's mapping is trusted: what happened to a row before it is forgotten."""
    right = window.followed

    def followed(change: Any, memory: Any, snapshot: Any, *rest: Any) -> Any:
        after: Any = right(change, memory, snapshot, *rest)
        trusts = snapshot.operation is Operation.REPLACE and isinstance(after, rows.RowMemory)
        return after._replace(missed=None) if trusts else after

    patch.setattr(window, "followed", followed)


# ---------------------------------------------------------------- sequence numbers and ages


def carry_old_seq(patch: pytest.MonkeyPatch) -> None:
    """Carried deletes keep a sequence number from before the commit that carries them."""
    right = new_snapshot.added_delete_files

    def added(head: Any, change: Any, answer: Any, shape: Any, sequence_number: int, files: Any) -> Any:
        older = sequence_number - 1 if change.command is Command.REWRITE else sequence_number
        return right(head, change, answer, shape, older, files)

    patch.setattr(new_snapshot, "added_delete_files", added)


def compact_new_seq(patch: pytest.MonkeyPatch) -> Policy:
    """A compaction's output is as new as the compaction."""
    return replace(LAKEPROOF, compaction_stamp=Stamp.NEW)


def carry_old_seq_and_compact_new_seq(patch: pytest.MonkeyPatch) -> Policy:
    """Both."""
    carry_old_seq(patch)
    return compact_new_seq(patch)


def compact_min_seq(patch: pytest.MonkeyPatch) -> Policy:
    """A compaction's output is as old as the oldest of its inputs."""
    return replace(LAKEPROOF, compaction_stamp=Stamp.MINIMUM)


def compact_max_seq(patch: pytest.MonkeyPatch) -> Policy:
    """A compaction's output is as old as the youngest of its inputs."""
    return replace(LAKEPROOF, compaction_stamp=Stamp.MAXIMUM)


def age_ignores_new(patch: pytest.MonkeyPatch) -> Policy:
    """Delete files age out by the files that stay, without those that the commit adds."""
    return replace(LAKEPROOF, aging_counts_added_files=False)


# ---------------------------------------------------------------- files that are gone


def compact_keep_rest(patch: pytest.MonkeyPatch) -> None:
    """A compaction commits though an input that gave it rows is gone."""
    right = rows.replaced_conflict
    patch.setattr(
        rows,
        "replaced_conflict",
        lambda change, *rest: None if change.command is Command.REWRITE else right(change, *rest),
    )


def cow_gone_ok(patch: pytest.MonkeyPatch) -> None:
    """A copy-on-write command that kept no row of a file does not mind that the file is gone."""
    right = validation.conflict_now
    patch.setattr(
        validation,
        "conflict_now",
        lambda change, memory, asked: right(change, memory, asked - {"replaced_files"}),
    )


def cow_eq_not_carried(patch: pytest.MonkeyPatch) -> None:
    """Copy-on-write carries position deletes over, but no equality deletes."""
    right = rows._carried
    patch.setattr(rows, "_carried", lambda change, carried, by: right(change, carried, by._replace(equality={})))


def dv_stale(patch: pytest.MonkeyPatch) -> None:
    """A deletion vector is merged with those that validation saw first, not with those of the head."""
    right = new_snapshot.added_delete_files

    def merging(writer: Writer, shared: Shared, own: Op, outcome: Outcome) -> Outcome:
        if "|" in own.group or own.window.rows is None:
            return outcome
        mine = {path for path, _ in own.window.rows.targets}
        vectors = tuple(file for file in shared.table.delete_files if file.positions and file.positions[0][0] in mine)
        change = own.change._replace(removed_delete_files=vectors)
        seen: Any = outcome.own
        return outcome._replace(own=seen._replace(change=change, group="|"))

    def added(head: Any, change: Any, *rest: Any) -> Any:
        files, _ = right(head._replace(delete_files=change.removed_delete_files), change, *rest)
        mine = {path for file in files for path, _ in file.positions}
        return files, frozenset(file.path for file in head.delete_files if file.positions[0][0] in mine)

    patch.setattr(new_snapshot, "added_delete_files", added)
    _change_step(patch, "validate", merging)


# ---------------------------------------------------------------- answers that are lost


def blind_retry(patch: pytest.MonkeyPatch) -> Policy:
    """A writer without an answer tries again and does not look for its own commit."""
    return replace(LAKEPROOF, finds_own_commit=False)


def check_id_once(patch: pytest.MonkeyPatch) -> Policy:
    """A writer without an answer looks for its own commit once, and never on later attempts."""
    right = calls.WriterCalls.look

    def look(self: calls.WriterCalls) -> Happened:
        first = self.own.request.tries == 1
        return Happened.OWN_ID_FOUND if first and self.own.request.landed else right(self)

    patch.setattr(calls.WriterCalls, "look", look)
    return blind_retry(patch)


# ---------------------------------------------------------------- filters that skip one entry too many


def rows_skipped(patch: pytest.MonkeyPatch) -> None:
    """The conflict filter misses new rows of one key."""
    right = rows.matches
    patch.setattr(rows, "matches", lambda where, row, columns: row[0] != "sarah" and right(where, row, columns))


def by_statistics(patch: pytest.MonkeyPatch) -> None:
    """New rows are judged by the statistics of their file, as where nobody knows their values. That is sound."""
    right = rows.matching_rows

    def matching_rows(change: Any, file: Any, shape: Any) -> Any:
        return right(change, file._replace(rows=None, record_count=len(file.rows)), shape)

    patch.setattr(rows, "matching_rows", matching_rows)


def bounds_skipped(patch: pytest.MonkeyPatch) -> None:
    """A file whose upper bound is the value looked for is skipped."""
    by_statistics(patch)
    _skip_upper_bound(patch)


def _skip_upper_bound(patch: pytest.MonkeyPatch) -> None:
    right = matching._interval_allows
    patch.setattr(
        matching,
        "_interval_allows",
        lambda op, value, known: right(op, value, known) and not (op == "=" and value == known.upper),
    )


def _skip_a_partition(patch: pytest.MonkeyPatch) -> None:
    right = matching._partition_allows
    patch.setattr(
        matching,
        "_partition_allows",
        lambda leaf, transform, there: there != "sarah" and right(leaf, transform, there),
    )


# ---------------------------------------------------------------- the cases


class Case(NamedTuple):
    """A variant and the bounds at which it is run; `BOUNDS` holds what they share."""

    wrong: Break
    isolation: str
    max_write_ops: int
    max_compactions: int
    more: Mapping[str, Any] = MappingProxyType({})

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters of the run."""
        sizes = {"max_write_ops": self.max_write_ops, "max_compactions": self.max_compactions}
        return {"commands": BASIC, **BOUNDS, "isolation": self.isolation, **sizes, **self.more}


SI, SER = "snapshot", "serializable"
UNSOUND = [
    Case(no_update_distinction, SI, 2, 0),
    Case(update_vs_delete, SI, 2, 0),
    Case(r2_off, SER, 2, 0),
    Case(r2_appends_only, SER, 2, 0),
    Case(reads_off, SER, 2, 0, {"commands": "insert,update,delete-exists"}),
    Case(rerun_keep_files, SI, 2, 0, {"measure_aborts": True, "col3_values": "A,B"}),
    Case(no_carry, SI, 2, 1),
    Case(no_carry, SI, 2, 0, COW_UPDATES),
    Case(carry_once, SI, 2, 1, BY_AGE),
    Case(remap_once, SI, 2, 1, BY_AGE),
    Case(carry_no_shift, SI, 2, 1, BY_AGE),
    Case(carry_old_seq_and_compact_new_seq, SI, 2, 1, BY_AGE),
    Case(compact_new_seq, SI, 2, 1, {**UPSERTS, "initial": "two-files"}),
    Case(compact_min_seq, SI, 2, 1, UPSERTS),
    Case(age_ignores_new, SI, 3, 1, {"commands": "insert,update,upsert", "num_keys": 1, **COW_UPDATES}),
    Case(compact_keep_rest, SI, 2, 2),
    Case(cow_gone_ok, SI, 2, 1, {**COW_UPDATES, "delete_mode": "copy-on-write", "initial": "two-files"}),
    Case(cow_eq_not_carried, SI, 2, 0, {**UPSERTS, **COW_UPDATES}),
    Case(remap_no_walk, SI, 2, 1),
    Case(remap_no_shift, SI, 2, 1, BY_AGE),
    Case(dv_stale, SI, 2, 0, {**BY_AGE, "format_version": 3}),
    Case(blind_retry, SI, 2, 0, {"unknown_outcomes": True}),
    Case(check_id_once, SI, 2, 0, {"unknown_outcomes": True}),
    Case(rows_skipped, SER, 2, 0),
    Case(bounds_skipped, SER, 2, 0),
]
SOUND = [
    Case(carry_old_seq, SI, 2, 2, {**BY_AGE, "predicates": "id"}),
    Case(compact_new_seq, SI, 2, 2, {**BY_AGE, "predicates": "id"}),
    Case(compact_max_seq, SI, 2, 1, UPSERTS),
    Case(age_ignores_new, SI, 2, 2, {**BY_AGE, "predicates": "id"}),
    Case(by_statistics, SER, 2, 1),
]


@cache
def _right(parameters: tuple[tuple[str, Any], ...]) -> Verdict:
    return searched(**dict(parameters))


def _name(case: Case) -> str:
    where = "-".join(str(value) for name, value in case.more.items() if name not in ("names", "num_keys", "predicates"))
    return "-".join(filter(None, (case.wrong.__name__, where)))


def _param(case: Case) -> Any:
    larger = case.max_compactions > 0 or "unknown_outcomes" in case.more
    return pytest.param(case, id=_name(case), marks=[pytest.mark.slow] * larger)


@pytest.mark.parametrize("case", in_part([_param(case) for case in UNSOUND], every=2))
def test_an_unsound_rule_is_caught_and_the_right_one_holds(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds(_right(tuple(case.parameters.items())))
    forget_everything()
    policy = case.wrong(monkeypatch) or LAKEPROOF
    first = "unknown_outcomes" not in case.more  # files are removed sooner than a command is committed twice
    assert "isolation_kept" in violated(searched(policy, first=first, **case.parameters)) & READS


@pytest.mark.parametrize("case", [_param(case) for case in SOUND])
def test_what_looks_suspicious_and_is_sound(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    right = _right(tuple(case.parameters.items()))
    forget_everything()
    policy = case.wrong(monkeypatch) or LAKEPROOF
    assert holds(right)
    assert holds(searched(policy, **case.parameters))


@pytest.mark.parametrize(
    ("skip", "policy", "parameters"),
    [
        pytest.param(_skip_upper_bound, "iceberg-spark", {"isolation": SER}, id="bounds, added data files"),
        pytest.param(
            _skip_a_partition,
            "iceberg-spark",
            {"isolation": SER, "col1_values": "sarah", "partitioned": True},
            id="partitions, added data files",
        ),
        pytest.param(
            _skip_a_partition,
            "iceberg-spark-fixed",
            {"col1_values": "sarah", "partitioned": True},
            id="partitions, new delete files",
        ),
    ],
)
def test_a_filter_that_skips_one_file_too_many_brings_the_undelete_back(
    skip: Callable[[pytest.MonkeyPatch], None], policy: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert holds(searched(policy, **parameters))
    forget_everything()
    skip(monkeypatch)
    undelete = searched(policy, **parameters)
    assert violated(undelete) == READS
    assert undelete.property("consistent_read").depth == 14
