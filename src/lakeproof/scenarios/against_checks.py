"""Runs a scenario against `commit/` itself: the checks, the policies and the snapshots they let through."""

from __future__ import annotations

import re
from typing import NamedTuple

from lakeproof.commit import (
    AlreadyCommitted,
    Answer,
    CheckList,
    Command,
    Commit,
    CommitWith,
    Conflict,
    Isolation,
    Mode,
    NothingLeft,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    check_list,
    checks_of,
    followed_all,
    validate,
)
from lakeproof.commit.row_command import RowCommand
from lakeproof.errors import InvalidInput
from lakeproof.filters import ALWAYS, Expression, applied, bound
from lakeproof.format import Bounds, DataFile, DeleteContent, DeleteFile, PartitionSpec, Snapshot, Value
from lakeproof.models.iceberg.writing import new_file, partition_of, rewritten, written
from lakeproof.scenarios.history import History
from lakeproof.scenarios.table_api import ALWAYS_ASKED, COMMANDS, ApiCall, FileDeclaration
from lakeproof.scenarios.text import Outcome, Scenario, Step
from lakeproof.sql.predicates import predicate_from_text
from lakeproof.sql.row_commands import row_command

MAX_RERUNS = 5
_OVERWRITES = (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS, Command.METADATA_DELETE)


class Doing(NamedTuple):
    """What an actor has in hand."""

    change: TableChange
    checks: CheckList
    command: RowCommand | None = None
    whole_history: bool = False
    answer: Answer | None = None
    expected_head: int | None = None
    in_flight: bool = False


class AgainstChecks:
    """A table, its history, and the actors of one scenario under one policy."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self.scenario, self.policy = scenario, policy
        self.history = History(scenario.table.shape)
        self.actors: dict[str, Doing] = {}
        self.declared: dict[str, DataFile] = {}
        self._set_up()

    def rows(self) -> tuple[tuple[Value, ...], ...]:
        """What a reader sees now."""
        return self.history.rows()

    def step(self, step: Step) -> Outcome | None:
        """Take one step; `None` where a step has no answer."""
        place = f"{self.scenario.name}:{step.line}"
        if step.verb == "expire":
            self.history.expired.add(int(step.text))
            return None
        if step.verb == "crash":
            self.actors.pop(step.actor, None)
            return None
        if step.verb == "scan":
            self._scan(step, place)
            return None
        if step.call is not None:
            self.actors[step.actor] = self._called(step.call, place)
            return None
        if step.actor not in self.actors:
            raise InvalidInput(f"{step.actor} has nothing to {step.verb}", place=place, hint="let it scan first")
        actions = {"validate": self._validate, "swap": self._swap, "commit": self._commit, "arrives": self._arrives}
        if step.verb in actions:
            return actions[step.verb](step.actor)
        if step.verb in ("swap-unanswered", "swap-delayed"):
            return self._swap(step.actor, answered=False, arrives=step.verb == "swap-unanswered")
        return None  # write

    # ------------------------------------------------------------ scanning

    def _set_up(self) -> None:
        shape = self.history.shape
        files: list[DataFile] = []
        for rows in self.scenario.rows:
            groups: dict[tuple[Value, ...], list[tuple[Value, ...]]] = {}
            for row in rows:
                if len(row) != len(shape.columns):
                    text = f"A row has {len(row)} values, the table {len(shape.columns)} columns"
                    raise InvalidInput(
                        text, place=self.scenario.name, hint=f"the columns are {', '.join(shape.columns)}"
                    )
                groups.setdefault(partition_of(row, shape), []).append(row)
            files.extend(new_file(len(files) + i, group, shape) for i, group in enumerate(groups.values()))
        files.extend(self._file(declared, self.scenario.name) for declared in self.scenario.files)
        if files:
            change = TableChange(Command.INSERT, added_data_files=tuple(files))
            self.history.commit(change, Commit(), self.policy)

    def _scan(self, step: Step, place: str) -> None:
        table = self.scenario.table
        spec = self.history.shape.specs[-1]
        command = row_command(
            step.text,
            self.history.shape.columns,
            place=place,
            dynamic_overwrite=table.dynamic_overwrite,
            partition_columns=tuple(field.column for field in spec),
        )
        doing = self._planned(command, step.actor, None)
        if doing is None:
            self.actors.pop(step.actor, None)
        else:
            self.actors[step.actor] = doing

    def _planned(self, command: RowCommand, actor: str, mode: Mode | None) -> Doing | None:
        table, shape, head = self.scenario.table, self.history.shape, self.history.head
        if command.command is Command.REWRITE:
            plan = rewritten(head, [f.path for f in head.data_files], shape, self.policy, command_id=actor)
        else:
            deletes = command.command in (Command.DELETE,)
            mode = mode or (table.delete_mode if deletes else table.update_mode)
            if self.policy.always_copies or command.command in _OVERWRITES:
                mode = Mode.COPY_ON_WRITE
            found = written(command, head, shape, self.policy, mode=mode, isolation=table.isolation, command_id=actor)
            if found is None:
                return None
            plan = found
        change = plan.change
        checks = checks_of(self.policy, change.command, change.mode, change.isolation, shape.format_version)
        return Doing(change, checks, command)

    # ------------------------------------------------------------ the table API

    def _called(self, call: ApiCall, place: str) -> Doing:
        asked = [*ALWAYS_ASKED[call.verb], *call.checks]
        if call.verb == "rewrite" and call.keep_sequence_number:
            asked[0] = "no_new_position_deletes_for_data_files"
        if call.exists and "data_files_exist" not in asked:
            asked.append("data_files_exist_skipping_deletes")
        live = {file.path: file for file in self.history.head.data_files}
        added = tuple(self._file(declared, place) for declared in call.add)
        scan = call.from_snapshot
        base = self.history.at(scan) if scan is not None else self.history.head
        partitions = tuple((f.spec_id, f.partition) for f in added) if call.verb == "replace-partitions" else None
        change = TableChange(
            command=COMMANDS[call.verb],
            mode=Mode.MERGE_ON_READ,
            isolation=Isolation.SERIALIZABLE,
            scan_snapshot=scan or None,
            scan_sequence_number=base.sequence_number,
            added_data_files=added,
            removed_data_files=tuple(self.declared[name] for name in self._known(call.remove, place)),
            added_delete_files=tuple(self._delete(name, place) for name in call.add_deletes),
            removed_delete_files=tuple(f for f in self.history.head.delete_files if f.path in call.remove_deletes),
            required_data_files=call.exists,
            conflict_filter=self._filter(call.filter, place) or ALWAYS,
            row_filter=self._filter(call.row_filter, place),
            replaced_partitions=partitions,
        )
        missing = [name for name in call.remove_deletes if name not in {f.path for f in change.removed_delete_files}]
        if missing or (live.keys() & {f.path for f in added}) - set(call.remove):
            raise InvalidInput(f"{', '.join(missing) or 'An added file'} does not fit the table", place=place)
        return Doing(change, check_list(tuple(dict.fromkeys(asked))), whole_history=scan is None)

    def _known(self, names: tuple[str, ...], place: str) -> tuple[str, ...]:
        for name in names:
            if name not in self.declared:
                raise InvalidInput(
                    f"There is no file {name!r}", place=place, hint=f"known are {', '.join(self.declared)}"
                )
        return names

    def _filter(self, text: str, place: str) -> Expression | None:
        if not text:
            return None
        shape = self.history.shape
        try:
            return bound(predicate_from_text(text, place=place), shape.columns, case_sensitive=shape.case_sensitive)
        except InvalidInput as error:
            raise InvalidInput(error.message, place=place, hint=error.hint) from None

    def _file(self, declared: FileDeclaration, place: str) -> DataFile:
        known = {column: (low, high) for column, low, high in declared.columns}
        spec: PartitionSpec = self.history.shape.specs[-1]
        partition = []
        for field in spec:
            low, high = known.get(field.column, (None, None))
            ends = {applied(field.transform, low), applied(field.transform, high)}
            if len(ends) > 1:
                raise InvalidInput(f"{declared.name} spans partitions of {field.column}", place=place)
            partition.append(ends.pop())
        bounds = tuple(Bounds(column, low, high, has_nulls=False) for column, (low, high) in known.items())
        file = DataFile(declared.name, tuple(partition), len(self.history.shape.specs) - 1, 0, 10, bounds)
        self.declared[declared.name] = file
        return file

    def _delete(self, name: str, place: str) -> DeleteFile:
        found = re.fullmatch(r"(\w+?)_(del|dv|eq)\d*", name)
        if not found:
            raise InvalidInput(f"{name!r} does not say what it deletes", place=place, hint="end it in _del, _dv or _eq")
        data = self.declared[self._known((found[1],), place)[0]]
        contents = {"del": DeleteContent.POSITIONS, "dv": DeleteContent.VECTOR, "eq": DeleteContent.EQUALITY}
        if found[2] == "eq":
            return DeleteFile(name, contents["eq"], data.partition, data.spec_id, positions=None, equality_values=None)
        return DeleteFile(name, contents[found[2]], data.partition, data.spec_id, positions=((data.path, 1),))

    # ------------------------------------------------------------ committing

    def _answer(self, doing: Doing, *, reruns_left: bool = True) -> Answer:
        unseen: tuple[Snapshot, ...] | None = tuple(self.history.snapshots.values())
        if not doing.whole_history:
            unseen = self.history.unseen(doing.change.scan_snapshot)
        if unseen is None:
            return Refuse(Conflict("history_known")) if doing.checks.names else Commit()
        shape, change = self.history.shape, doing.change
        scanned = self.history.head if doing.whole_history else self.history.at(change.scan_snapshot)
        window = followed_all(change, unseen, doing.checks, shape, scanned)
        return validate(
            change, window, self.policy, doing.checks, reruns_left=reruns_left, head=self.history.head, shape=shape
        )

    def _validate(self, actor: str) -> Outcome:
        doing = self.actors[actor]
        answer = self._answer(doing)
        self.actors[actor] = doing._replace(answer=answer, expected_head=self.history.head.snapshot_id)
        return worded(answer)

    def _swap(self, actor: str, *, answered: bool = True, arrives: bool = True) -> Outcome:
        doing = self.actors[actor]
        if not isinstance(doing.answer, Commit | CommitWith) or doing.expected_head != self.history.head.snapshot_id:
            self.actors[actor] = doing._replace(answer=None)
            return Outcome("rejected") if answered else Outcome("unknown")
        if arrives:
            self.history.commit(doing.change, doing.answer, self.policy)
        self.actors[actor] = doing._replace(in_flight=not arrives)
        if answered:
            del self.actors[actor]
            return Outcome("ok")
        return Outcome("unknown")

    def _arrives(self, actor: str) -> Outcome:
        """A swap that was sent and not answered reaches the catalog only now."""
        doing = self.actors[actor]
        if not doing.in_flight or doing.expected_head != self.history.head.snapshot_id:
            return Outcome("rejected")
        if isinstance(doing.answer, Commit | CommitWith):
            self.history.commit(doing.change, doing.answer, self.policy)
        self.actors[actor] = doing._replace(in_flight=False)
        return Outcome("ok")

    def _commit(self, actor: str) -> Outcome:
        for reruns in range(MAX_RERUNS + 1):
            doing = self.actors[actor]
            answer = self._answer(doing, reruns_left=reruns < MAX_RERUNS)
            if isinstance(answer, RunAgain) and doing.command is not None:
                again = self._planned(doing.command, actor, answer.mode)
                if again is None:
                    del self.actors[actor]
                    return Outcome("ok re-run")
                self.actors[actor] = again
                continue
            if isinstance(answer, Commit | CommitWith):
                self.history.commit(doing.change, answer, self.policy)
            del self.actors[actor]
            outcome = worded(answer)
            return Outcome("ok re-run") if reruns and outcome.word == "ok" else outcome
        raise AssertionError("the bound on re-runs ends the loop")


def worded(answer: Answer) -> Outcome:
    """An answer in a scenario's words."""
    if isinstance(answer, Refuse | RunAgain):
        return Outcome("conflict", answer.conflict.check, answer.conflict.snapshot)
    if isinstance(answer, AlreadyCommitted):
        return Outcome("already committed")
    return Outcome("nothing left") if isinstance(answer, NothingLeft) else Outcome("ok")
