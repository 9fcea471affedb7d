"""Runs a scenario against `commit/` itself: the checks, the policies and the snapshots they let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lakeproof.commit import (
    POLICIES,
    AlreadyCommitted,
    Answer,
    Attempt,
    CheckList,
    Command,
    Commit,
    CommitWith,
    Happened,
    NothingLeft,
    Phase,
    Policy,
    Refuse,
    RunAgain,
    TableChange,
    call,
    checks_of,
    followed_all,
    heard,
    validate,
    what_became,
)
from lakeproof.commit.meaning import AmbiguousMerge, RowCommand
from lakeproof.commit.planning import Run, run_until_done
from lakeproof.commit.writing import new_file, partition_of, plan_of, rewritten, written
from lakeproof.errors import InvalidInput
from lakeproof.format import DataFile, Row, Value
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.file_calls import NamedFiles, checks_of_call
from lakeproof.scenarios.history import History
from lakeproof.scenarios.table_line import altered
from lakeproof.scenarios.text import Scenario, ScenarioStep, StepAnswer


class Doing(NamedTuple):
    """What an actor has in hand. `change` is `None` when its scan found nothing to do.

    `loaded` is the head that it has seen, `asked` the sequence number of its last try, and `late` a request on its way:
    the head that it expects and what it commits.
    """

    change: TableChange | None
    checks: CheckList | None = None
    command: RowCommand | None = None
    whole_history: bool = False
    attempt: Attempt = Attempt()
    answer: Answer | None = None
    reruns_left: bool = True
    loaded: int | None = None
    asked: int = 0
    late: tuple[int | None, Answer | None] | None = None


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

    def step(self, step: ScenarioStep) -> StepAnswer | None:
        """Take one step; `None` where a step has no answer."""
        place = self.place = f"{self.scenario.name}:{step.line}"
        match step.verb:
            case "scan":
                self.actors[step.actor] = self._scanned(step, place)
            case "set":
                self.history.alter(altered(self.history.shape, step.text, place))
            case "expire":
                self._expire(int(step.text), place)
            case _ if step.call is not None:
                change = self.named.change(step.call, place)
                self.actors[step.actor] = Doing(
                    change, checks_of_call(step.call), whole_history=step.call.from_snapshot is None
                )
            case _ if step.actor not in self.actors:
                raise InvalidInput(f"{step.actor} has nothing to {step.verb}", place=place, hint="let it scan first")
            case "crash":
                del self.actors[step.actor]
            case "write":
                pass  # what would be written is known since the scan
            case _:
                return self._ended(step)
        return None

    def _ended(self, step: ScenarioStep) -> StepAnswer:
        """The answer of a step that ends, or tries to end, what its actor has in hand."""
        if self.actors[step.actor].change is None:
            return StepAnswer("nothing left")
        match step.verb:
            case "validate":
                return self._validate(step.actor)
            case "commit":
                return self._commit(step.actor)
            case "arrives":
                return self._arrives(step.actor)
        return self._swap(step.actor, step.verb)

    # ------------------------------------------------------------ scanning

    def _set_up(self) -> None:
        shape = self.history.shape
        files: list[DataFile] = []
        for rows in self.scenario.rows:
            groups: dict[tuple[Value, ...], list[Row]] = {}
            for row in rows:
                groups.setdefault(partition_of(row, shape), []).append(row)
            files += [new_file(number, group, shape) for number, group in enumerate(groups.values(), len(files))]
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

    def _scanned(self, step: ScenarioStep, place: str) -> Doing:
        command = command_of(step.text, self.history.shape, self.scenario.table.dynamic_overwrite, place)
        return self._planned(command, step.actor)

    def _planned(self, command: RowCommand, actor: str, again: RunAgain | None = None) -> Doing:
        """What the command would change, if it scans the head now."""
        table, shape, head, policy = self.scenario.table, self.history.shape, self.history.head, self.policy_of(actor)
        if command.command is Command.REWRITE:
            known = [file.path for file in head.data_files if file.rows is not None]
            found = rewritten(head, known, shape, actor)
        else:
            mode = table.delete_mode if command.command is Command.DELETE else table.update_mode
            plan = plan_of(command, shape, policy, table_mode=mode, isolation=table.isolation, again=again)
            try:
                wrote = written(command, head, shape, plan, actor)
            except (TypeError, AmbiguousMerge) as error:  # such as the sum of a column of names
                raise InvalidInput(f"The command does not fit the rows: {error}", place=self.place) from None
            if wrote is None:
                return Doing(None)
            found = wrote
        change = found.change
        checks = checks_of(policy, change.command, change.mode, change.isolation, shape.format_version)
        return Doing(change, checks, command)

    # ------------------------------------------------------------ committing

    def policy_of(self, actor: str) -> Policy:
        """The policy that this actor obeys."""
        return self.policies.get(actor, self.policy)

    def _validate(self, actor: str) -> StepAnswer:
        doing = self.actors[actor]
        if doing.attempt.phase is Phase.SWAP and doing.loaded == self.history.head.snapshot_id:
            return StepAnswer("ok")  # validated before, and the swap not tried: nothing is asked again
        return self._called(actor, until=Phase.SWAP)

    def _swap(self, actor: str, fate: str) -> StepAnswer:
        if self.actors[actor].attempt.phase is not Phase.SWAP:
            return StepAnswer("rejected" if fate == "swap" else "unknown")
        calls = _Calls(self, actor, fate)
        attempt, _ = call(self.actors[actor].attempt, calls)
        self.actors[actor] = self.actors[actor]._replace(attempt=attempt)
        if attempt.phase is Phase.COMMITTED:
            del self.actors[actor]
            return StepAnswer("ok")
        return StepAnswer("rejected" if fate == "swap" else "unknown")

    def _arrives(self, actor: str) -> StepAnswer:
        """A swap that was sent and not answered reaches the catalog only now."""
        doing = self.actors[actor]
        self.actors[actor] = doing._replace(late=None)
        if doing.late is None or doing.late[0] != self.history.head.snapshot_id:
            return StepAnswer("rejected")
        self.apply(actor, doing.late[1])
        return StepAnswer("ok")

    def _commit(self, actor: str) -> StepAnswer:
        def once(run: Run) -> StepAnswer | RunAgain:
            if run.again is not None and doing.command is not None:
                self.actors[actor] = self._planned(doing.command, actor, run.again)
            if self.actors[actor].change is None:
                return StepAnswer("nothing left")
            self.actors[actor] = self.actors[actor]._replace(reruns_left=run.left())
            found, answer = self._called(actor), self.actors[actor].answer
            return answer if isinstance(answer, RunAgain) and doing.command is not None else found

        doing = self.actors[actor]
        found, last = run_until_done(once, lambda run, conflict: None)
        del self.actors[actor]
        return StepAnswer("ok re-run") if last.reruns and found.word in ("ok", "nothing left") else found

    def _called(self, actor: str, *, until: Phase | None = None) -> StepAnswer:
        """Obey the attempt up to this phase, or to its end; a writer whose attempt has ended begins another."""
        doing = self.actors[actor]
        attempt, calls = Attempt() if doing.attempt.ended else doing.attempt, _Calls(self, actor)
        if attempt.phase is Phase.SWAP and until is Phase.SWAP:
            attempt, _ = call(attempt, calls)  # it is lost, and validated again
        while attempt.phase is not until and not attempt.ended:
            attempt, error = call(attempt, calls)
            if error is not None:
                raise error
        self.actors[actor] = self.actors[actor]._replace(attempt=attempt)
        if attempt.phase is Phase.UNKNOWN:
            return StepAnswer("unknown")
        answer = self.actors[actor].answer
        return StepAnswer("already committed") if answer is None else word_answer(answer)

    def apply(self, actor: str, answer: Answer | None) -> None:
        """Make the actor's change the head."""
        change = self.actors[actor].change
        if change is not None and isinstance(answer, Commit | CommitWith):
            self.history.commit(change, answer, self.policy_of(actor))


class _Calls:
    """What `commit/driver.py` calls in a scenario: the history is the table, a step says what becomes of a request."""

    def __init__(self, runner: AgainstChecks, actor: str, fate: str = "swap") -> None:
        self.runner, self.history, self.actor, self.fate = runner, runner.history, actor, fate

    @property
    def doing(self) -> Doing:
        """What the actor has in hand."""
        return self.runner.actors[self.actor]

    def _note(self, **known: object) -> None:
        self.runner.actors[self.actor] = self.doing._replace(**known)  # type: ignore[arg-type]

    def refresh(self) -> Happened:
        """The head is known."""
        self._note(loaded=self.history.head.snapshot_id, answer=None)
        return Happened.LOADED

    def look(self) -> Happened:
        """The snapshots that were not expired say whether one is the actor's."""
        self.refresh()
        since = (self.doing.change and self.doing.change.scan_snapshot) or 0
        seen = [s for number, s in self.history.snapshots.items() if number not in self.history.expired]
        found = any(s.command_id == self.actor and s.snapshot_id > since for s in seen)
        if found and self.runner.policy_of(self.actor).finds_own_commit:
            return Happened.OWN_ID_FOUND
        return what_became(
            asked=self.doing.asked, last=self.history.head.sequence_number, taken={s.sequence_number for s in seen}
        )

    def validate(self) -> Happened:
        """Ask the policy's checks of the window."""
        doing, shape, policy = self.doing, self.history.shape, self.runner.policy_of(self.actor)
        change, checks = doing.change, doing.checks
        answer: Answer = NothingLeft()
        if change is not None and checks is not None:
            unseen, missing = self.history.unseen(None if doing.whole_history else change.scan_snapshot)
            head = self.history.head
            scanned = head if doing.whole_history or missing else self.history.at(change.scan_snapshot)
            window = followed_all(change, unseen, checks, shape, scanned, missing=missing)
            answer = validate(
                change, window, policy, checks, reruns_left=doing.reruns_left, head=self.history.head, shape=shape
            )
        self._note(answer=answer)
        return heard(answer)

    def write_metadata(self) -> Happened:
        """The next sequence number is asked for."""
        self._note(asked=self.history.head.sequence_number + 1)
        return Happened.WRITTEN

    def swap(self) -> Happened:
        """The step says whether the request arrives, and whether it is answered."""
        doing, wins = self.doing, self.doing.loaded == self.history.head.snapshot_id
        if wins and self.fate == "swap-delayed":
            self._note(late=(doing.loaded, doing.answer))
        elif wins:
            self.runner.apply(self.actor, doing.answer)
        if self.fate != "swap":
            raise TimeoutError
        return Happened.SWAPPED if wins else Happened.LOST_SWAP

    def written(self) -> Sequence[str]:
        """Nothing is written."""
        return ()

    named = written

    def remove(self, paths: Sequence[str]) -> None:
        """Nothing can be removed."""


def word_answer(answer: Answer) -> StepAnswer:
    """An answer in a scenario's words."""
    if isinstance(answer, Refuse | RunAgain):
        return StepAnswer("conflict", answer.conflict.check, answer.conflict.snapshot)
    if isinstance(answer, AlreadyCommitted):
        return StepAnswer("already committed")
    return StepAnswer("nothing left") if isinstance(answer, NothingLeft) else StepAnswer("ok")
