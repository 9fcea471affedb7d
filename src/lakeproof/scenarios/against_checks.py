"""Runs a scenario against `commit/` itself: the checks, the policies and the snapshots they let through."""

from __future__ import annotations

from typing import NamedTuple

from lakeproof.commit import (
    POLICIES,
    AlreadyCommitted,
    Answer,
    CheckList,
    Command,
    Commit,
    CommitWith,
    Conflict,
    Mode,
    NothingLeft,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    checks_of,
    followed_all,
    validate,
)
from lakeproof.commit.row_command import AmbiguousMerge, RowCommand
from lakeproof.commit.validation import refused
from lakeproof.errors import InvalidInput
from lakeproof.format import DataFile, Row, Value
from lakeproof.models.iceberg.writing import new_file, partition_of, rewritten, written
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.file_calls import NamedFiles, asked
from lakeproof.scenarios.history import History
from lakeproof.scenarios.table_line import altered
from lakeproof.scenarios.text import HISTORY_KNOWN, Outcome, Scenario, Step

MAX_RERUNS = 5
_COPIES = (Command.OVERWRITE, Command.OVERWRITE_PARTITIONS, Command.METADATA_DELETE)


class Doing(NamedTuple):
    """What an actor has in hand. `change` is `None` when its scan found nothing to do.

    `late` is a request on its way: the head that it expects and what it commits.
    """

    change: TableChange | None
    checks: CheckList | None = None
    command: RowCommand | None = None
    whole_history: bool = False
    answer: Answer | None = None
    expected_head: int | None = None
    late: tuple[int | None, Answer] | None = None


class AgainstChecks:
    """A table, its history, and the actors of one scenario under one policy."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self.scenario = scenario
        self.policy, self.policies = policy, {actor: POLICIES[name] for actor, name in scenario.policy_of}
        self.history = History(scenario.table.shape)
        self.named = NamedFiles(self.history)
        self.actors: dict[str, Doing] = {}
        self.place = scenario.name
        self._set_up()

    def rows(self) -> tuple[Row, ...]:
        """What a reader sees now."""
        return self.history.rows()

    def seen(self, what: str) -> tuple[str, ...]:
        """The live files, or what each commit so far was."""
        if what == "snapshots":
            return tuple(str(snapshot.operation) for snapshot in self.history.snapshots.values())
        head = self.history.head
        return (*(file.path for file in head.data_files), *(file.path for file in head.delete_files))

    def step(self, step: Step) -> Outcome | None:
        """Take one step; `None` where a step has no answer."""
        place = self.place = f"{self.scenario.name}:{step.line}"
        match step.verb:
            case "scan":
                self.actors[step.actor] = self._scanned(step, place)
            case "set":
                self.history.shape = altered(self.history.shape, step.text, place)
            case "expire":
                self._expire(int(step.text), place)
            case _ if step.call is not None:
                change = self.named.change(step.call, place)
                self.actors[step.actor] = Doing(change, asked(step.call), whole_history=step.call.from_snapshot is None)
            case _ if step.actor not in self.actors:
                raise InvalidInput(f"{step.actor} has nothing to {step.verb}", place=place, hint="let it scan first")
            case "crash":
                del self.actors[step.actor]
            case "write":
                pass  # what would be written is known since the scan
            case _:
                return self._ended(step)
        return None

    def _ended(self, step: Step) -> Outcome:
        """The answer of a step that ends, or tries to end, what its actor has in hand."""
        if self.actors[step.actor].change is None:
            return Outcome("nothing left")
        match step.verb:
            case "validate":
                return self._validate(step.actor)
            case "swap":
                return self._swap(step.actor)
            case "commit":
                return self._commit(step.actor)
            case "arrives":
                return self._arrives(step.actor)
        return self._swap(step.actor, answered=False, arrives=step.verb == "swap-unanswered")

    def policy_of(self, actor: str) -> Policy:
        """The policy that this actor obeys."""
        return self.policies.get(actor, self.policy)

    # ------------------------------------------------------------ scanning

    def _set_up(self) -> None:
        shape = self.history.shape
        files: list[DataFile] = []
        for rows in self.scenario.rows:
            groups: dict[tuple[Value, ...], list[Row]] = {}
            for row in rows:
                groups.setdefault(partition_of(row, shape), []).append(row)
            files.extend(new_file(len(files) + i, group, shape) for i, group in enumerate(groups.values()))
        files.extend(self.named.declare(declaration) for declaration in self.scenario.files)
        if files:
            self.history.commit(TableChange(Command.INSERT, added_data_files=tuple(files)), Commit(), self.policy)

    def _expire(self, snapshot: int, place: str) -> None:
        if snapshot not in self.history.snapshots or snapshot == self.history.head.snapshot_id:
            known = ", ".join(str(i) for i in self.history.snapshots if i != self.history.head.snapshot_id)
            raise InvalidInput(
                f"Snapshot {snapshot} cannot be expired", place=place, hint=f"those before the head are {known}"
            )
        self.history.expired.add(snapshot)

    def _scanned(self, step: Step, place: str) -> Doing:
        command = command_of(step.text, self.history.shape, self.scenario.table.dynamic_overwrite, place)
        return self._planned(command, step.actor, None)

    def _planned(self, command: RowCommand, actor: str, mode: Mode | None) -> Doing:
        """What the command would change, if it scans the head now."""
        table, shape, head, policy = self.scenario.table, self.history.shape, self.history.head, self.policy_of(actor)
        if command.command is Command.REWRITE:
            known = [file.path for file in head.data_files if file.rows is not None]
            plan = rewritten(head, known, shape, policy, command_id=actor)
        else:
            mode = mode or (table.delete_mode if command.command is Command.DELETE else table.update_mode)
            if policy.always_copies or command.command in _COPIES:
                mode = Mode.COPY_ON_WRITE
            try:
                found = written(command, head, shape, policy, mode=mode, isolation=table.isolation, command_id=actor)
            except (TypeError, AmbiguousMerge) as error:  # such as the sum of a column of names
                raise InvalidInput(f"The command does not fit the rows: {error}", place=self.place) from None
            if found is None:
                return Doing(None)
            plan = found
        change = plan.change
        checks = checks_of(policy, change.command, change.mode, change.isolation, shape.format_version)
        return Doing(change, checks, command)

    # ------------------------------------------------------------ committing

    def _answer(self, actor: str, *, reruns_left: bool = True) -> Answer:
        doing = self.actors[actor]
        change, checks, shape = doing.change, doing.checks, self.history.shape
        if change is None or checks is None:
            return NothingLeft()
        unseen = self.history.unseen(None if doing.whole_history else change.scan_snapshot)
        if unseen is None:
            broken = refused(change, Conflict(HISTORY_KNOWN), self.policy_of(actor), reruns_left=reruns_left)
            return broken if checks.names else Commit()
        scanned = self.history.head if doing.whole_history else self.history.at(change.scan_snapshot)
        window = followed_all(change, unseen, checks, shape, scanned)
        return validate(
            change, window, self.policy_of(actor), checks, reruns_left=reruns_left, head=self.history.head, shape=shape
        )

    def _apply(self, actor: str, answer: Answer | None) -> None:
        doing = self.actors[actor]
        if doing.change is not None and isinstance(answer, Commit | CommitWith):
            self.history.commit(doing.change, answer, self.policy_of(actor))

    def _validate(self, actor: str) -> Outcome:
        answer = self._answer(actor)
        head = self.history.head.snapshot_id
        self.actors[actor] = self.actors[actor]._replace(answer=answer, expected_head=head)
        return worded(answer)

    def _swap(self, actor: str, *, answered: bool = True, arrives: bool = True) -> Outcome:
        doing = self.actors[actor]
        if not isinstance(doing.answer, Commit | CommitWith) or doing.expected_head != self.history.head.snapshot_id:
            self.actors[actor] = doing._replace(answer=None)
            return Outcome("rejected") if answered else Outcome("unknown")
        if arrives:
            self._apply(actor, doing.answer)
        else:
            self.actors[actor] = doing._replace(late=(doing.expected_head, doing.answer))
        if not answered:
            return Outcome("unknown")
        del self.actors[actor]
        return Outcome("ok")

    def _arrives(self, actor: str) -> Outcome:
        """A swap that was sent and not answered reaches the catalog only now."""
        doing = self.actors[actor]
        self.actors[actor] = doing._replace(late=None)
        if doing.late is None or doing.late[0] != self.history.head.snapshot_id:
            return Outcome("rejected")
        self._apply(actor, doing.late[1])
        return Outcome("ok")

    def _commit(self, actor: str) -> Outcome:
        for reruns in range(MAX_RERUNS + 1):
            answer = self._answer(actor, reruns_left=reruns < MAX_RERUNS)
            command = self.actors[actor].command
            if isinstance(answer, RunAgain) and command is not None:
                self.actors[actor] = self._planned(command, actor, answer.mode)
                continue
            self._apply(actor, answer)
            del self.actors[actor]
            word = worded(answer).word
            return Outcome("ok re-run") if reruns and word in ("ok", "nothing left") else worded(answer)
        raise AssertionError("the bound on re-runs ends the loop")


def worded(answer: Answer) -> Outcome:
    """An answer in a scenario's words."""
    if isinstance(answer, Refuse | RunAgain):
        return Outcome("conflict", answer.conflict.check, answer.conflict.snapshot)
    if isinstance(answer, AlreadyCommitted):
        return Outcome("already committed")
    return Outcome("nothing left") if isinstance(answer, NothingLeft) else Outcome("ok")
