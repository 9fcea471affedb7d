"""How commands print: Rich tables for people, one JSON document for programs, errors in one voice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from lakeproof.errors import CommitConflict, CommitRejected, CommitUnknown, LakeproofError, PlacedError, Unavailable

DONE, DIFFERS, BAD_INPUT, UNKNOWN = 0, 1, 2, 3
EXIT = {"holds": DONE, "violated": DIFFERS, "unknown": UNKNOWN}
"""The exit code of a verdict."""


def console(*, stderr: bool = False) -> Console:
    """A console that is plain when piped."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 160
    return Console(stderr=stderr, highlight=False, soft_wrap=True, width=width)


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


def run_guarded(run: Callable[[], int], *, as_json: bool) -> int:
    """Run a command; an error of ours becomes its words and its exit code, never a traceback."""
    try:
        return run()
    except LakeproofError as error:
        return print_error(error, as_json=as_json)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


def print_error(error: LakeproofError, *, as_json: bool) -> int:
    """An error as JSON on stdout or as text on stderr; gives the exit code."""
    place, hint = (error.place, error.hint) if isinstance(error, PlacedError) else ("", "")
    message = error.message if isinstance(error, PlacedError) else str(error)
    if as_json:
        print_json({"error": {"message": message, "place": place, "hint": hint}})
    else:
        named = isinstance(
            error, CommitConflict | CommitRejected | CommitUnknown | Unavailable
        )  # its name says what to do next
        print(f"{type(error).__name__ if named else 'error'}: {error}", file=sys.stderr)
    return error.exit_code
