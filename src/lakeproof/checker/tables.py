"""Values as small numbers, and every answer of the model kept: both engines search over these tables.

Shared values, own values and events are interned. A step runs once per distinct (kind, shared, own), `observe` once per
(kind, own, event). Two reductions live here, so that an engine need not know of them:

- private steps: an outcome after which its process has private steps only is replaced by where those lead;
- value symmetry: a shared value that is a renamed known one becomes that one. The renaming is made part of the event,
  so that all other processes are renamed as they observe it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from lakeproof.checker.model import Model, Outcome, Step
from lakeproof.errors import ModelError

Row = tuple[int, int, int, int]  # shared after, own after, event (0: none), move: what happened
Rows = tuple[bool, tuple[Row, ...]]  # are all private (so nobody else need move first)?, the outcomes
Move = tuple[tuple[str, ...], tuple[str, ...]]  # names of the steps (private ones taken at once come after), marks
State = tuple[int, ...]  # shared, then one own value per process, processes in the order of `Tables.order`


class Interner:
    """Gives each distinct value a number, in the order of first sight."""

    def __init__(self, first: tuple[Hashable, ...] = ()) -> None:
        self.values: list[Any] = list(first)
        self.ids: dict[Hashable, int] = {value: number for number, value in enumerate(first)}

    def __call__(self, value: Hashable) -> int:
        number = self.ids.get(value)
        if number is None:
            number = self.ids[value] = len(self.values)
            self.values.append(value)
        return number


class Settled(NamedTuple):
    """One way in which a process comes to rest after its private steps."""

    own: Any
    steps: tuple[Step, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of all these steps."""
        return tuple(mark for outcome in self.outcomes for mark in outcome.marks)


class Tables:
    """The model's values, numbered, and its answers, computed once."""

    settles_lone = True  # whether a lone process with memory is renamed by what leaves the shared value alone

    def __init__(self, model: Model, *, private: bool = True, values: bool = True) -> None:
        self.model = model
        kinds = list(dict.fromkeys(process.kind for process in model.processes))
        numbers = [kinds.index(process.kind) for process in model.processes]
        self.order = sorted(range(len(numbers)), key=numbers.__getitem__)  # processes of one kind side by side
        self.kinds = tuple(numbers[i] for i in self.order)
        self.steps = [model.steps_of(kind) for kind in kinds]
        self.quiet = [tuple(step for step in steps if step.private) if private else () for steps in self.steps]
        self.symmetries = model.value_symmetries if values else ()
        self.form = model.own_form if self.symmetries else None
        self.shared = Interner()
        self.renamed: dict[Hashable, tuple[int, int]] = {}  # shared value -> (the known one, symmetry + 1)
        self.owns = [Interner() for _ in kinds]
        self.events = Interner((None,))  # 0: nothing to observe; else (event, symmetry + 1, how places move, shared)
        self.moves = Interner()
        self.rows: list[dict[int, Rows]] = [{} for _ in kinds]  # per kind: shared << 32 | own -> rows
        self.seen: list[dict[int, int]] = [{} for _ in kinds]  # per kind: event << 32 | own -> own
        self.twins: list[dict[int, int]] = [{} for _ in kinds]  # per kind: own -> the one that it is heard as
        remembers = [kind for kind, process in zip(numbers, model.processes, strict=True) if process.has_memory]
        self.lone = remembers[0] if self.symmetries and self.settles_lone and len(remembers) == 1 else -1
        self.settled: dict[int, tuple[int, int]] = {}  # shared << 32 | own -> (own, symmetry + 1) of the lone process
        self.stabilizers: dict[int, list[tuple[int, Hashable]]] = {}  # shared -> symmetries that leave it alone
        self.by_own: dict[tuple[int, int, int], list[Outcome]] = {}  # steps that do not read the shared value

    def initial(self) -> State:
        """The initial state."""
        owns = (self.owns[kind](self.model.processes[i].own) for kind, i in zip(self.kinds, self.order, strict=True))
        shared = self.shared(self.model.shared)
        return (shared, *(self.settled_own(kind, shared, own)[0] for kind, own in zip(self.kinds, owns, strict=True)))

    def values_of(self, state: State) -> tuple[Any, tuple[Any, ...]]:
        """The shared value and the own values in the order of the model's processes."""
        owns: list[Any] = [None] * len(self.order)
        for kind, process, own in zip(self.kinds, self.order, state[1:], strict=True):
            owns[process] = self.owns[kind].values[own]
        return self.shared.values[state[0]], tuple(owns)

    def rows_of(self, kind: int, key: int) -> Rows:
        """The outcomes of the pair shared << 32 | own; kept."""
        rows = self.rows[kind].get(key)
        if rows is None:
            rows = self.rows[kind][key] = self.compute(kind, key >> 32, key & 0xFFFFFFFF)
        return rows

    def observed(self, kind: int, key: int) -> int:
        """The own value after observing, for event << 32 | own; kept."""
        own = self.seen[kind].get(key)
        if own is None:
            twin = key >> 32 << 32 | self.twin(kind, key & 0xFFFFFFFF)
            own = self.seen[kind].get(twin)
            if own is None:
                own = self.seen[kind][twin] = self.observe(kind, twin & 0xFFFFFFFF, key >> 32)
            self.seen[kind][key] = own
        return own

    def twin(self, kind: int, own: int) -> int:
        """The own value that every event turns into the same as this one; mostly itself."""
        found = self.twins[kind].get(own)
        if found is None:
            heard_as = self.model.heard_as
            value = self.owns[kind].values[own]
            found = own if heard_as is None else self.owns[kind](heard_as(value))
            self.twins[kind][own] = found
        return found

    def observe(self, kind: int, own: int, event: int) -> int:
        """Ask the model what a process makes of an event (and rename its values if the event says so)."""
        value = self.owns[kind].values[own]
        what, symmetry, moves, shared = self.events.values[event]
        if what is not None:
            value = self.model.observe(value, what)
        if symmetry:
            value = self.symmetries[symmetry - 1].rename(value, moves)
        return self.settled_own(kind, shared, self.owns[kind](value))[0]

    def compute(self, kind: int, shared: int, own: int) -> Rows:
        """Ask the model for every outcome of one pair."""
        shared_value, own_value = self.shared.values[shared], self.owns[kind].values[own]
        rows: list[Row] = []
        quiet = urgent = len(self.quiet[kind]) > 0
        for index, step in enumerate(self.steps[kind]):
            if step.reads_shared:
                outcomes = step.run(shared_value, own_value)
            else:
                outcomes = self._by_own(kind, index, own, shared_value, own_value)
            for outcome in outcomes:
                if not quiet:
                    rows.append(self._row(kind, shared, shared_value, outcome, self.moves(((step.name,), outcome[4]))))
                    continue
                urgent = urgent and step.private
                if step.private:
                    self._must_be_private(step, shared_value, outcome)
                for rest in self.settle(kind, outcome.shared, outcome.own):
                    move = self.moves(((step.name, *(s.name for s in rest.steps)), outcome.marks + rest.marks))
                    rows.append(self._row(kind, shared, shared_value, outcome._replace(own=rest.own), move))
        return urgent and len(rows) > 0, tuple(rows)

    def settle(self, kind: int, shared: Any, own: Any) -> Iterator[Settled]:
        """Where a process comes to rest once it has taken all its private steps."""
        return self._settle(kind, shared, Settled(own), {own})

    def _settle(self, kind: int, shared: Any, so_far: Settled, passed: set[Any]) -> Iterator[Settled]:
        moves = [(step, outcome) for step in self.quiet[kind] for outcome in step.run(shared, so_far.own)]
        if not moves or self._has_loud_step(kind, shared, so_far.own):
            yield so_far
            return
        for step, outcome in moves:
            self._must_be_private(step, shared, outcome)
            if outcome.own in passed:
                raise ModelError(f"the private step {step.name!r} leads back to where it came from, so it never ends")
            further = Settled(outcome.own, (*so_far.steps, step), (*so_far.outcomes, outcome))
            yield from self._settle(kind, shared, further, passed | {outcome.own})

    def _has_loud_step(self, kind: int, shared: Any, own: Any) -> bool:
        return any(True for step in self.steps[kind] if not step.private for _ in step.run(shared, own))

    def _row(self, kind: int, shared: int, value: Any, outcome: Outcome, move: int) -> Row:
        after, own, event, _, _ = outcome
        moves: Hashable = None
        if after is value:
            number, symmetry = shared, 0
        elif not self.symmetries:
            number, symmetry = self.shared(after), 0
        else:
            number, symmetry = self.representative(after)
            if symmetry:
                maps = self.symmetries[symmetry - 1]
                moves = maps.moves(after)
                own = maps.rename(own, moves)
        mine = self.owns[kind](own if self.form is None else self.form(own))
        if self.lone < 0:
            heard = 0 if event is None and not symmetry else self.events((event, symmetry, moves, 0))
        elif kind == self.lone:
            mine, heard = self.settled_own(kind, number, mine)[0], 0  # nobody else remembers anything
        else:
            heard = 0 if event is None and number == shared else self.events((event, symmetry, moves, number))
        return number, mine, heard, move

    def settled_own(self, kind: int, shared: int, own: int) -> tuple[int, int]:
        """The own value that stands for all that this one is renamed to while the shared value stays, and how (+ 1).

        Only of the one process with memory, where no other has any: several would have to be renamed together.
        """
        if kind != self.lone:
            return own, 0
        key = shared << 32 | own
        found = self.settled.get(key)
        if found is None:
            value, number = self.owns[kind].values[own], self.owns[kind]
            images = [(own, 0)]
            for symmetry, moves in self._stabilizer(shared):
                images.append((number(self.symmetries[symmetry - 1].rename(value, moves)), symmetry))
            found = self.settled[key] = min(images)
        return found

    def _stabilizer(self, shared: int) -> list[tuple[int, Hashable]]:
        """The symmetries (+ 1) that leave a shared value as it is, each with how places move."""
        found = self.stabilizers.get(shared)
        if found is None:
            value = self.shared.values[shared]
            pairs = enumerate(self.symmetries, 1)
            found = [(number, maps.moves(value)) for number, maps in pairs if maps.shared(value) == value]
            self.stabilizers[shared] = found
        return found

    def representative(self, value: Any) -> tuple[int, int]:
        """The known shared value that this one is a renaming of, and the symmetry (+ 1) that leads there; 0: itself."""
        number = self.shared.ids.get(value)
        if number is not None:
            return number, 0
        known = self.renamed.get(value)
        return self.choose_representative(value) if known is None else known

    def choose_representative(self, value: Any) -> tuple[int, int]:
        """The same of a value that was not met before: the first renaming of it that was."""
        for symmetry, maps in enumerate(self.symmetries, 1):
            number = self.shared.ids.get(maps.shared(value))
            if number is not None:
                known = self.renamed[value] = (number, symmetry)
                return known
        return self.shared(value), 0

    def _by_own(self, kind: int, index: int, own: int, shared: Any, own_value: Any) -> list[Outcome]:
        key = (kind, index, own)
        known = self.by_own.get(key)
        if known is None:
            step = self.steps[kind][index]
            known = self.by_own[key] = list(step.run(shared, own_value))
            if any(outcome.shared is not shared or outcome.event is not None for outcome in known):
                raise ModelError(f"the step {step.name!r} says it does not read the shared value, but changes it")
        return [outcome._replace(shared=shared) for outcome in known]

    @staticmethod
    def _must_be_private(step: Step, shared: Any, outcome: Outcome) -> None:
        if outcome.event is not None or (outcome.shared is not shared and outcome.shared != shared):
            raise ModelError(f"the private step {step.name!r} changes the shared value or is seen by others")
