"""The reference page of the commands, made from their own parsers."""

from __future__ import annotations

import argparse
from importlib import import_module

from lakeproof.cli.main import COMMANDS, Registered

PATH = "docs/reference/cli.md"

INTRODUCTION = """\
# Commands

`lakeproof COMMAND --help` says the same as this page, which is made from the parsers (`make docs`).

## What holds for all of them

- `--json` prints one JSON document on stdout and nothing else. Bad input is then
  `{"error": {"message", "place", "hint"}}`.
- Progress is drawn on stderr, and only if that is a terminal.
- Commands that touch a table take `--catalog URI` (`sqlite:///FILE`, `postgresql+psycopg://…`, `http(s)://…` for a REST
  catalog, `memory:`) and `--warehouse PATH`. The catalog is called `lakeproof` and a name without a namespace is in
  `default`, so PyIceberg opens the same tables:
  `load_catalog("lakeproof", type="sql", uri="sqlite:///lakehouse/catalog.db", warehouse="file:///…/lakehouse")`.

| exit code | means |
|---|---|
| 0 | done; holds; agrees; nothing found |
| 1 | violated; an anomaly; a difference; findings; a commit was refused |
| 2 | bad input: one sentence, where, and a hint |
| 3 | unknown: a search was cut, a commit may or may not be there, no answer of the catalog, a [defect](errors.md) |
| 130 | stopped by Ctrl-C (a search gives its verdict so far instead) |
"""

EXITS = {
    "sql": "0 done, 1 a commit was refused, 2 bad input, 3 the outcome of a commit is unknown. The first statement "
    "that fails ends the run.",
    "check": "0 every property that counts holds, 1 one is violated, 2 bad input, 3 a limit cut the search before "
    "anything was found.",
    "matrix": "0, or 1 if some pair commits with wrong rows.",
    "audit": "0 nothing found, 1 findings, 2 there is no such table.",
    "repair": "0 nothing to repair, or all was repaired, 1 a plan that was not applied, findings that are left, or the "
    "table was changed meanwhile, 2 there is no such table, 3 nobody knows whether the commit happened.",
    "scenario": "0 everything agrees, 1 something does not, 2 a file cannot be read as a scenario.",
    "replay": "0 it agrees, 1 it differs, 2 the trace cannot be read, 3 it does not apply to this implementation.",
    "conformance": "0 no rows are wrong, 1 some are, or the program reported an error, 2 a file cannot be read.",
    "doctor": "0 all there, 1 something is missing; each line says how to mend it.",
}


def page() -> tuple[str, str]:
    """The path of the page and its text."""
    listed = [f"- [`lakeproof {name}`](#lakeproof-{name}): {one.help}" for name, one in COMMANDS.items()]
    return PATH, "\n".join([INTRODUCTION, *listed, "", *(_command(name, one) for name, one in COMMANDS.items())])


def _command(name: str, registered: Registered) -> str:
    """One command: what it does, an example, its arguments, its exit codes."""
    parser = argparse.ArgumentParser(prog=f"lakeproof {name}", add_help=False)
    import_module(f"lakeproof.cli.commands.{registered.module}").add_arguments(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    lines = [f"## lakeproof {name}", "", f"{registered.help[0].upper()}{registered.help[1:]}.", ""]
    lines += ["```", registered.example, "```", ""]
    if shown:
        lines += ["| argument | |", "|---|---|", *(f"| `{_spelled(one)}` | {_said(one)} |" for one in shown), ""]
    if name in EXITS:
        lines += [f"Exit codes: {EXITS[name]}", ""]
    return "\n".join(lines)


def _spelled(action: argparse.Action) -> str:
    """The argument as one types it."""
    value = action.metavar if isinstance(action.metavar, str) else None
    if action.choices and value is None:
        value = "|".join(str(choice) for choice in action.choices)
    if not action.option_strings:
        spelled = value or action.dest.upper()
        return {"?": f"[{spelled}]", "+": f"{spelled}…", "*": f"[{spelled}…]"}.get(str(action.nargs), spelled)
    flags = ", ".join(action.option_strings)
    takes = action.nargs != 0 and not isinstance(action, argparse._StoreTrueAction)
    return f"{flags} {(value or action.dest.upper()).replace('|', ' or ')}" if takes else flags


def _said(action: argparse.Action) -> str:
    """Its help, with the default where the help names it."""
    text = (action.help or "").replace("%(default)s", f"`{action.default}`").replace("%%", "%")
    text = text.replace("|", "\\|")
    return f"{text}; may be repeated" if isinstance(action, argparse._AppendAction) else text
