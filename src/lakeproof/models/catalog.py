"""Every model by its name: how it is made, what can be set, and how its traces are told. A new model is a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from lakeproof.checker.model import Model
from lakeproof.checker.verdicts.trace import Trace
from lakeproof.checker.verdicts.verdict import Verdict
from lakeproof.commit.policy import POLICIES, Policy
from lakeproof.commit.policy_text import named_policy, one_of, policy_from_text
from lakeproof.errors import InvalidInput
from lakeproof.models import files, iceberg, paimon, sink
from lakeproof.models.files.rules_text import rules_from_text
from lakeproof.models.files.world import Rules
from lakeproof.models.iceberg.telling import told
from lakeproof.models.parameter_values import unknown
from lakeproof.models.scenario_text import scenario_text
from lakeproof.models.sink.world import SinkRules


class Subject(NamedTuple):
    """What is checked: a model, how it is made in another process and to be walked by hand, how its traces are told,
    and how one becomes a scenario (`None`: it cannot)."""

    model: Model
    source: Callable[[], Model]
    policy: str | None = None
    told: Callable[[Trace], Trace] = lambda trace: trace
    scenario: Callable[[Trace, str], str] | None = None
    to_walk: Callable[[], Model] | None = None  # `None`: as it is


class Entry(NamedTuple):
    """One model: its subject for parameters and a policy (`None`: ours), its parameters and its presets.

    `policy` reads a policy from a name or from the text of a file (the second word); `None`: the model has none.
    """

    subject: Callable[[Mapping[str, str], Any], Subject]
    parameters: Callable[[], dict[str, str]]
    presets: Mapping[str, Mapping[str, str]]
    policy: Callable[[str, str | None], Any] | None = None

    @property
    def has_policies(self) -> bool:
        """Whether whoever takes part may have rules of its own."""
        return self.policy is not None


def _policy(word: str, text: str | None) -> Policy:
    return named_policy(word) if text is None else policy_from_text(text, place=word)


def _rules(word: str, text: str | None) -> Rules:
    if text is not None:
        return rules_from_text(text, place=word)
    one_of(word, (files.OURS.name,), "rules for files", place=f"--policy {word}")
    return files.OURS


def iceberg_subject(parameters: Mapping[str, str], policy: Policy | None = None) -> Subject:
    """The Iceberg model under a policy, with its own way of telling traces."""
    chosen = policy or POLICIES["lakeproof"]
    config = iceberg.configured(parameters, chosen)
    in_words = partial(iceberg.model_of, config, told=True)  # with names and history: there is a table to draw
    return Subject(
        iceberg.model_of(config),
        partial(iceberg.build, dict(parameters), chosen),
        chosen.name,
        lambda trace: told(in_words(), trace),
        lambda trace, title: scenario_text(config, trace, title),
        in_words,
    )


def _paimon_subject(parameters: Mapping[str, str], policy: None) -> Subject:
    return Subject(paimon.build(parameters), partial(paimon.build, dict(parameters)))


def files_subject(parameters: Mapping[str, str], rules: Rules | None = None) -> Subject:
    """The model of files under rules."""
    chosen = rules or files.OURS
    source = partial(files.build, dict(parameters), chosen)
    return Subject(source(), source, chosen.name)


def sink_subject(parameters: Mapping[str, str], rules: SinkRules | None = None) -> Subject:
    """The model of a streaming sink under rules."""
    chosen = rules or sink.OURS
    source = partial(sink.build, dict(parameters), chosen)
    return Subject(source(), source, chosen.name)


def _sink_rules(word: str, text: str | None) -> SinkRules:
    return sink.OURS if text is None else sink.rules_from_text(text, place=word)


CATALOG: dict[str, Entry] = {
    "iceberg": Entry(iceberg_subject, iceberg.parameter_help, iceberg.PRESETS, _policy),
    "files": Entry(files_subject, files.parameter_help, files.PRESETS, _rules),
    "sink": Entry(sink_subject, sink.parameter_help, sink.PRESETS, _sink_rules),
    "paimon": Entry(_paimon_subject, paimon.parameter_help, paimon.PRESETS),
}
LATER = {"delta": "Delta Lake", "hudi": "Apache Hudi"}


def entry_of(name: str) -> Entry:
    """The model of this name."""
    if name in LATER:
        hint = f"there are {' and '.join(CATALOG)}"
        raise InvalidInput(f"There is no model of {LATER[name]} yet", place=name, hint=hint)
    if name not in CATALOG:
        raise unknown("checker", "model", name, CATALOG, place=name)
    return CATALOG[name]


def with_told_traces(verdict: Verdict, subject: Subject) -> Verdict:
    """The verdict with every trace told as its model tells it."""
    properties = tuple(p if p.trace is None else p._replace(trace=subject.told(p.trace)) for p in verdict.properties)
    return replace(verdict, properties=properties)
