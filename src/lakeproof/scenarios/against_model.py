"""Runs a scenario on the model: each actor is a writer whose program is what it scans, driven line by line."""

from __future__ import annotations

from lakeproof.checker.model import Outcome as Way
from lakeproof.checker.runs import World, start_of, taken
from lakeproof.commit import POLICIES, Command, Phase, Policy
from lakeproof.commit.meaning import RowCommand
from lakeproof.commit.planning import MAX_RERUNS
from lakeproof.commit.writing import first_files, partition_of
from lakeproof.errors import InvalidInput
from lakeproof.format import Row, visible
from lakeproof.models.iceberg import Member, assembled
from lakeproof.models.iceberg.calls import WriterCalls
from lakeproof.models.iceberg.observing import expired
from lakeproof.models.iceberg.world import COMMIT, COMPACTION, Op, Ready, Setup, Writer
from lakeproof.scenarios.against_checks import word_answer
from lakeproof.scenarios.commands import command_of
from lakeproof.scenarios.text import Scenario, ScenarioStep, StepAnswer


class DoesNotApply(InvalidInput):
    """The scenario uses something that the model does not have."""


class AgainstModel:
    """The model's writers, driven through one scenario under one policy."""

    def __init__(self, scenario: Scenario, policy: Policy) -> None:
        self.scenario = scenario
        commands, programs = _programs(scenario)
        own = {actor: POLICIES[name] for actor, name in scenario.policy_of}
        members = tuple(Member(actor, own.get(actor, policy), program=tuple(p)) for actor, p in programs.items())
        self.setup = _setup(scenario, commands)
        self.model = assembled(self.setup, members, {}, told=True)
        self.names = [member.name for member in members]
        self.writers = {m.name: Writer(m.policy, self.setup, m.name, None, m.program) for m in members}
        self.world = start_of(self.model)

    def rows(self) -> tuple[Row, ...]:
        """What a reader sees now."""
        return visible(self.world.shared.table, self.setup.shape.columns)

    def seen(self, what: str) -> None:
        """The model gives files names of its own."""

    def step(self, step: ScenarioStep) -> StepAnswer | None:
        """Take one line."""
        actor = step.actor
        match step.verb:
            case "scan":
                self._scan(actor)
            case "write":
                self._advance(actor)
            case "crash":
                self._leave(actor)
            case "expire":
                self._expire(int(step.text))
            case _ if isinstance(self._own(actor), Ready):
                return StepAnswer("nothing left")
            case "validate":
                return self._validate(actor)
            case "commit":
                return self._commit(actor)
            case "arrives":
                return StepAnswer("ok") if self._take(actor, "arrive") else StepAnswer("rejected")
            case _:
                return self._swap(step)
        return None

    # ------------------------------------------------------------ driving

    def _own(self, actor: str) -> Ready | Op:
        own = self.world.owns[self.names.index(actor)]
        assert isinstance(own, Ready | Op)
        return own

    def _set(self, actor: str, own: Ready | Op) -> None:
        at = self.names.index(actor)
        self.world = World(self.world.shared, (*self.world.owns[:at], own, *self.world.owns[at + 1 :]))

    def _take(self, actor: str, *names: str, choice: int = 0) -> Way | None:
        """Take the first of these steps that is open; a violation does not end a scenario."""
        at = self.names.index(actor)
        for step in self.model.steps_of(self.model.processes[at].kind):
            if step.name in names:
                ways = list(step.run(self.world.shared, self.world.owns[at]))
                if len(ways) > choice:
                    world = taken(self.model, self.world, at, step, ways[choice]).world
                    self.world = World(world.shared._replace(violated=()), world.owns)
                    return ways[choice]
        return None

    def _advance(self, actor: str) -> None:
        while self._take(actor, "read", "write"):
            pass

    def _leave(self, actor: str) -> None:
        own = self._own(actor)
        if isinstance(own, Op):
            self._set(actor, Ready(own.turn + 1))

    def _scan(self, actor: str) -> None:
        self._leave(actor)
        self._take(actor, "start", "start compaction")

    def _expire(self, snapshot: int) -> None:
        for actor in self.names:
            own = self._own(actor)
            inside = isinstance(own, Op) and (own.change.scan_snapshot or 0) < snapshot
            if isinstance(own, Op):
                found = expired(self.writers[actor], own._replace(since=2 * inside), snapshot=snapshot)
                self._set(actor, found) if isinstance(found, Ready | Op) else None

    def _tried(self, actor: str) -> tuple[StepAnswer, Way | None]:
        """The next try up to the swap, or to the end of its attempt, by the step that is open for it."""
        own = self._own(actor)
        assert isinstance(own, Op)
        calls = WriterCalls(self.writers[actor], self.world.shared, own).tried()
        if calls.attempt.phase is Phase.UNKNOWN:
            outcome = StepAnswer("unknown")
        else:
            outcome = StepAnswer("already committed") if calls.answer is None else word_answer(calls.answer)
        return outcome, self._take(actor, "validate", "look", "finish", "refuse")

    def _validate(self, actor: str) -> StepAnswer:
        self._advance(actor)
        if self._swaps(actor):
            return StepAnswer("ok")
        own = self._own(actor)
        outcome, way = self._tried(actor)
        if way is not None and outcome.word in ("conflict", "already committed"):
            self._set(actor, own)  # the scenario goes on from here: its next line is another scan, or a commit
        return outcome

    def _swaps(self, actor: str) -> bool:
        own = self._own(actor)
        return isinstance(own, Op) and own.phase == COMMIT

    def _swap(self, step: ScenarioStep) -> StepAnswer:
        answered_now = step.verb == "swap"
        if not self._swaps(step.actor):
            return StepAnswer("rejected" if answered_now else "unknown")
        self._take(step.actor, "swap", choice={"swap": 0, "swap-unanswered": 1, "swap-delayed": 2}[step.verb])
        return StepAnswer("ok" if answered_now else "unknown")

    def _commit(self, actor: str) -> StepAnswer:
        self._advance(actor)
        outcome = StepAnswer("ok")
        for reruns in range(MAX_RERUNS + 1):
            if not self._swaps(actor):
                outcome, way = self._tried(actor)
                if way is not None and {"re-run", "compaction planned again"} & set(way.marks):
                    if isinstance(self._own(actor), Ready):
                        return StepAnswer("ok re-run")
                    self._advance(actor)
                    continue
            self._take(actor, "swap")
            return StepAnswer("ok re-run") if reruns and outcome.word in ("ok", "nothing left") else outcome
        raise AssertionError("the bound on re-runs ends the loop")


def _programs(scenario: Scenario) -> tuple[tuple[RowCommand, ...], dict[str, list[tuple[int, ...]]]]:
    """What each actor scans, in order; a scenario with calls of the table API is not for the model."""
    commands: dict[RowCommand, int] = {}
    programs: dict[str, list[tuple[int, ...]]] = {}
    if scenario.files:
        raise DoesNotApply("The model knows rows, not files without rows")
    for step in scenario.steps:
        if not isinstance(step, ScenarioStep) or step.verb == "expire":
            continue
        if step.call is not None or step.verb == "set":
            raise DoesNotApply("The model has no calls of the table API")
        program = programs.setdefault(step.actor, [])
        if step.verb == "scan":
            place = f"{scenario.name}:{step.line}"
            command = command_of(step.text, scenario.table.shape, scenario.table.dynamic_overwrite, place)
            rewrites = command.command is Command.REWRITE
            program.append((COMPACTION,) if rewrites else (commands.setdefault(command, len(commands)),))
    return tuple(commands), programs


def _setup(scenario: Scenario, commands: tuple[RowCommand, ...]) -> Setup:
    table, shape = scenario.table, scenario.table.shape
    groups: list[list[Row]] = []
    for rows in scenario.rows:
        parts: dict[object, list[Row]] = {}
        for row in rows:
            parts.setdefault(partition_of(row, shape), []).append(row)
        groups.extend(parts.values())
    return Setup(
        shape=shape,
        commands=commands,
        table=first_files(groups, shape),
        update_mode=table.update_mode,
        delete_mode=table.delete_mode,
        isolation=table.isolation,
        max_commands=1,
        max_compactions=1,
        duplicates=True,
        canonical=False,
        measure=True,
        unknown=True,
        guarded=True,
        told=True,
        compacts_always=True,
    )
