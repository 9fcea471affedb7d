"""What a model is: processes that take steps over one shared value, and what must be true of their runs.

A step is a pure function of the shared value and of the acting process's own value; it yields one `Outcome` per choice.
When an outcome carries an event, every other process observes it: `observe(own, event)` is its new own value.
All values must be hashable and immutable, and equal values must behave alike: the search interns them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from lakeproof.errors import ModelError

Kind = Literal["always", "eventually", "reachable"]
Subject = Literal["shared", "each", "all", "mark", "rest"]


class Outcome(NamedTuple):
    """What one choice of a step leads to."""

    shared: Hashable
    own: Hashable
    event: Hashable | None = None  # what every other process observes; None: nothing to observe
    label: str = ""  # the choice made, for traces only
    marks: tuple[str, ...] = ()  # names of what happened here: counted, and properties may be about them


StepFunction = Callable[[Any, Any], Iterable[Outcome]]
TestOfAll = Callable[[Any, tuple[Any, ...]], bool]
"""Asks a whole state: the shared value, and all own values in the order of the processes."""


class Step(NamedTuple):
    """A named transition of one process.

    A private step touches nothing but its process's own value, carries no event, commutes with `observe` and is
    invisible to every property, so the search may take it at once; `broken_promises` tests that. A step that does not
    read the shared value at all (`reads_shared=False`) is computed once per own value and must yield the shared value
    it was given.
    """

    name: str
    run: StepFunction
    private: bool = False
    caption: str = ""  # default: the first sentence of run's docstring
    reads_shared: bool = True


class Process(NamedTuple):
    """One actor; processes of one kind have the same steps and are interchangeable: steps never see a name.

    A process without memory keeps the own value that it begins with; events and renamings leave it alone.
    """

    name: str
    own: Hashable
    kind: str = "process"
    has_memory: bool = True


class ValueSymmetry(NamedTuple):
    """One renaming of values (say, of two keys) that no step, observation or property can tell apart.

    Where own values name things by their place in the shared value, `places` says how those places move, and `own` is
    given that too.
    """

    shared: Callable[[Any], Any]
    own: Callable[..., Any]
    places: Callable[[Any], Hashable] | None = None

    def moves(self, shared: Any) -> Hashable:
        """How the places of this shared value move; `None`: own values name none."""
        return None if self.places is None else self.places(shared)

    def rename(self, own: Any, moves: Hashable) -> Any:
        """An own value that stands beside a shared value whose places move like this."""
        return self.own(own) if self.places is None else self.own(own, moves)


@dataclass(frozen=True)
class Property:
    """A named claim about all runs; made by `always`, `never`, `eventually`, `reachable` and their variants.

    `counts` says whether a violation makes the whole verdict "violated". `symmetric` promises that a test of all own
    values does not care which process of a kind has which; without it such a property switches process symmetry off.
    """

    name: str
    kind: Kind
    subject: Subject
    test: Callable[..., bool] | None = None
    mark: str = ""
    seed_name: str = ""
    counts: bool = True
    symmetric: bool = True


def always(name: str, test: Callable[[Any], bool], *, seed_name: str = "", counts: bool = True) -> Property:
    """The test holds of every reachable shared value (evaluated once per distinct value)."""
    return Property(name, "always", "shared", test, seed_name=seed_name, counts=counts)


def always_of_each(
    name: str, test: Callable[[Any, Any], bool], *, seed_name: str = "", counts: bool = True
) -> Property:
    """The test holds of every shared value with every own value beside it (evaluated once per distinct pair)."""
    return Property(name, "always", "each", test, seed_name=seed_name, counts=counts)


def always_of_all(
    name: str, test: TestOfAll, *, seed_name: str = "", counts: bool = True, symmetric: bool = False
) -> Property:
    """The test holds of every state: the shared value and all own values in the order of the processes."""
    return Property(name, "always", "all", test, seed_name=seed_name, counts=counts, symmetric=symmetric)


def never(name: str, mark: str, *, seed_name: str = "", counts: bool = True) -> Property:
    """No transition carries the mark."""
    return Property(name, "always", "mark", mark=mark, seed_name=seed_name, counts=counts)


def reachable(name: str, what: str | Callable[[Any], bool], *, seed_name: str = "", counts: bool = False) -> Property:
    """Some transition carries the mark, or some shared value passes the test."""
    if isinstance(what, str):
        return Property(name, "reachable", "mark", mark=what, seed_name=seed_name, counts=counts)
    return Property(name, "reachable", "shared", what, seed_name=seed_name, counts=counts)


def eventually(
    name: str, test: TestOfAll, *, seed_name: str = "", counts: bool = True, symmetric: bool = False
) -> Property:
    """From every reachable state, every weakly fair run comes to a state of which the test holds."""
    return Property(name, "eventually", "all", test, seed_name=seed_name, counts=counts, symmetric=symmetric)


def eventually_each(
    name: str, test: Callable[[Any, Any], bool], *, seed_name: str = "", counts: bool = True
) -> Property:
    """For each process: from every reachable state, every fair run comes to a state where the test holds of it."""
    return Property(name, "eventually", "each", test, seed_name=seed_name, counts=counts)


NO_DEADLOCK = Property("no_deadlock", "always", "rest")  # part of every model that says which processes may rest


class SearchBounds(NamedTuple):
    """What a verdict is about: what it leaves open, what it fixes, and what was not asked at all."""

    unbounded: tuple[str, ...] = ()  # kinds of things, such as "commands"
    bounded: tuple[str, ...] = ()  # such as "2 writers", "tables of up to 3 ids"
    not_asked: tuple[str, ...] = ()

    def __str__(self) -> str:
        """What is open and what is fixed, in one line.

        >>> str(SearchBounds(("writers", "commands"), ("tables of up to 3 ids",)))
        'for any number of writers and commands; tables of up to 3 ids'
        """
        *most, last = self.unbounded or ("",)
        open_ones = f"{', '.join(most)} and {last}" if most else last
        return "; ".join(filter(None, (f"for any number of {open_ones}" if open_ones else "", ", ".join(self.bounded))))

    def to_json(self) -> dict[str, Any]:
        """The bounds as `lakeproof check --json` prints them."""
        return {**{name: list(value) for name, value in self._asdict().items()}, "text": str(self)}


NOT_SAID = SearchBounds()


def blind(own: Any, event: Any) -> Any:
    """The process learns nothing from what others do."""
    return own


@dataclass(frozen=True)
class Model:
    """Processes over one shared value, with their steps and properties; everything the search needs to know."""

    name: str
    shared: Hashable  # the initial shared value
    processes: tuple[Process, ...]
    steps: tuple[Step, ...] | Mapping[str, tuple[Step, ...]]  # for all, or per kind of process
    properties: tuple[Property, ...] = ()
    observe: Callable[[Any, Any], Any] = blind
    parameters: Mapping[str, object] = field(default_factory=dict)
    describe: Callable[[Any, tuple[Any, ...]], Any] | None = None  # (shared, owns) -> JSON-like value; None: by field
    value_symmetries: tuple[ValueSymmetry, ...] = ()
    own_form: Callable[[Any], Any] | None = None  # own → the one that stands for all that behave alike, where renamed
    heard_as: Callable[[Any], Any] | None = None  # own → an own value that every event turns into the same
    is_final: Callable[[Any, Any], bool] | None = None  # may this process rest? None: nothing is a deadlock
    bounds: SearchBounds = NOT_SAID  # what its parameters fix and what they leave open, for the verdict to say

    def __post_init__(self) -> None:
        """A model whose parts do not fit together is refused here, not in the middle of a search."""
        if not self.processes:
            raise ModelError(f"model {self.name!r} has no process")
        for process in self.processes:
            self.steps_of(process.kind)
        for what, names in (("process", self.processes), ("property", self.properties)):
            _refuse_twins(self.name, what, [item.name for item in names])

    def claims(self) -> tuple[Property, ...]:
        """Its properties, and that nothing gets stuck where it may not rest."""
        return self.properties if self.is_final is None else (*self.properties, NO_DEADLOCK)

    def steps_of(self, kind: str) -> tuple[Step, ...]:
        """The steps that a process of this kind may take."""
        if not isinstance(self.steps, Mapping):
            return self.steps
        if kind not in self.steps:
            raise ModelError(f"model {self.name!r} has a process of kind {kind!r} but no steps for it")
        return self.steps[kind]

    def all_steps(self) -> dict[str, Step]:
        """Every step by its name, in the order of the protocol."""
        kinds = dict.fromkeys(process.kind for process in self.processes)
        return {step.name: step for kind in kinds for step in self.steps_of(kind)}


def caption_of(step: Step) -> str:
    """The step's caption: its own, or the first sentence of its function's docstring."""
    if step.caption:
        return step.caption
    run = step.run
    while isinstance(run, functools.partial):
        run = run.func
    text = " ".join((run.__doc__ or step.name).split())
    return text.split(". ")[0].rstrip(".")


def _refuse_twins(model: str, what: str, names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ModelError(f"model {model!r} has more than one {what} named {twins[0]!r}")
