"""Every parameter of this model and the named presets."""

from __future__ import annotations

from collections.abc import Mapping

from lakeproof.errors import InvalidInput
from lakeproof.models import parameter_values as values
from lakeproof.models.files.world import COMMANDS, Rules, Setup
from lakeproof.models.parameter_values import Parameter, Parameters

LIMITS = {
    "lost-answers": "lost answer",
    "failures": "failure",
    "crashes": "crash",
    "expiries": "expiry",
    "orphan-removals": "orphans",
    "drops": "drop",
    "creations": "creation",
    "tags": "tag",
    "scans": "scan",
}
"""How often something happens: the parameter, and the word that the model counts it by."""

PARAMETERS: dict[str, Parameter] = {
    "writers": Parameter("count", "2", "how many writers there are"),
    "maintainers": Parameter("count", "1", "who expires, removes orphans, drops and makes tables; 2: side by side"),
    "max-commands": Parameter("count", "2", "commands in all"),
    "max-retries": Parameter("count", "1", "how often a writer tries again after a lost swap"),
    "commands": Parameter("names", "append", f"which commands are run: {', '.join(COMMANDS)}"),
    "initial": Parameter("empty|one-row|two-snapshots|no-table", "one-row", "what is there in the beginning"),
    "lost-answers": Parameter("count", "0", "answers of the catalog that get lost: the request landed, or is late"),
    "late-requests": Parameter("switch", "false", "a request without an answer may arrive later, or never"),
    "failures": Parameter("count", "0", "calls that fail while a writer loads, validates or writes metadata"),
    "crashes": Parameter("count", "0", "writers that die between two calls"),
    "expiries": Parameter("count", "0", "how often all snapshots but the head and the tagged ones are expired"),
    "orphan-removals": Parameter("count", "0", "how often the folder is searched for files that nothing names"),
    "drops": Parameter("count", "0", "how often the table is dropped with its files"),
    "creations": Parameter("count", "0", "how often a query makes the table; its query may fail"),
    "tags": Parameter("count", "0", "how often somebody tags an older snapshot"),
    "scans": Parameter("count", "0", "how often somebody reads the table, file by file"),
    "old-versions": Parameter("count or all", "all", "how many old metadata files a commit keeps"),
    "catalog": Parameter("compare-and-swap|last-writer-wins", "compare-and-swap", "what the catalog does when asked"),
    "neighbour": Parameter("switch", "false", "another table lies in the same folder"),
    "slow-writers": Parameter("switch", "false", "a writer may be at work for longer than orphans are young"),
}
PRESETS: dict[str, dict[str, str]] = {
    "cleanup": {"lost-answers": "1", "late-requests": "true", "failures": "1", "commands": "append,rewrite"},
    "expire-beside-writers": {
        "initial": "two-snapshots",
        "expiries": "1",
        "tags": "1",
        "lost-answers": "1",
        "old-versions": "1",
    },
    "orphans-beside-writers": {
        "orphan-removals": "1",
        "expiries": "1",
        "maintainers": "2",
        "crashes": "1",
        "initial": "two-snapshots",
    },
    "orphans-in-a-shared-folder": {"orphan-removals": "1", "crashes": "1", "neighbour": "true"},
    "reader-beside-expiry": {
        "initial": "two-snapshots",
        "expiries": "1",
        "scans": "1",
        "commands": "append,rewrite",
        "old-versions": "1",
    },
    "create-and-drop": {"initial": "no-table", "creations": "1", "drops": "1"},
    "alter-beside-writers": {"commands": "append,alter", "lost-answers": "1"},
}
SETTINGS = Parameters("files", PARAMETERS, PRESETS)


def setup_from(parameters: Mapping[str, str], rules: Rules) -> tuple[Setup, dict[str, str]]:
    """The set-up that the parameters name, and every parameter with its value."""
    given = SETTINGS.given(parameters)
    word = SETTINGS.values(given)
    for name, what in PARAMETERS.items():
        if "|" in what.kind:
            values.choice(name, word[name], what.kind.split("|"))
    commands = values.names("commands", word["commands"], "append,rewrite")
    for command in commands:
        if command not in COMMANDS:
            raise values.unknown("files", "command", command, COMMANDS, place=f"--set commands={word['commands']}")
    kept = word["old-versions"]
    setup = Setup(
        rules=rules,
        commands=commands,
        limits=tuple((what, values.count(name, word[name])) for name, what in LIMITS.items()),
        compares=word["catalog"] == "compare-and-swap",
        late=values.switch("late-requests", word["late-requests"]),
        max_commands=values.count("max-commands", word["max-commands"]),
        max_retries=values.count("max-retries", word["max-retries"]),
        keep_versions=None if kept == "all" else values.count("old-versions", kept, 1),
        neighbour=values.switch("neighbour", word["neighbour"]),
        slow_writers=values.switch("slow-writers", word["slow-writers"]),
    )
    if setup.late and not dict(setup.limits)["lost answer"]:
        hint = "--set lost-answers=1"
        raise InvalidInput("A late request is one whose answer is lost", place="--set late-requests=true", hint=hint)
    return setup, word
