"""Explores any model of processes over one shared value, and has never heard of tables."""

from lakeproof.checker.limits import Progress
from lakeproof.checker.load import load_model
from lakeproof.checker.model import (
    Model,
    Outcome,
    Process,
    Property,
    Step,
    ValueSymmetry,
    always,
    always_of_all,
    always_of_each,
    eventually,
    eventually_each,
    never,
    reachable,
)
from lakeproof.checker.reduction_promises import broken_promises
from lakeproof.checker.search import check
from lakeproof.checker.verdicts.trace import Trace, from_itf, replayed, to_itf
from lakeproof.checker.verdicts.verdict import PropertyVerdict, Verdict

__all__ = [
    "Model",
    "Outcome",
    "Process",
    "Progress",
    "Property",
    "PropertyVerdict",
    "Step",
    "Trace",
    "ValueSymmetry",
    "Verdict",
    "always",
    "always_of_all",
    "always_of_each",
    "broken_promises",
    "check",
    "eventually",
    "eventually_each",
    "from_itf",
    "load_model",
    "never",
    "reachable",
    "replayed",
    "to_itf",
]
