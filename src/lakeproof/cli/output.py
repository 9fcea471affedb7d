"""How commands print: Rich tables for people, one JSON document for programs, errors in one voice."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from rich.console import Console

from lakeproof.errors import (
    CommitConflict,
    CommitRejected,
    CommitUnknown,
    Defect,
    InvalidInput,
    LakeproofError,
    PlacedError,
    Unavailable,
    disk_is_full,
    hide_secrets,
)

DONE, DIFFERS, BAD_INPUT, UNKNOWN = 0, 1, 2, 3
STOPPED = 130  # by Ctrl-C, as shells say it
TRACEBACK = "LAKEPROOF_TRACEBACK"
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
        code = run()
        sys.stdout.flush()  # a full disk or a closed pipe shall be heard of here
        return code
    except LakeproofError as error:
        return print_error(error, as_json=as_json)
    except KeyboardInterrupt:
        return say_stopped()
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except OSError as error:
        return print_error(_of_the_system(error), as_json=as_json)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            print(hide_secrets(traceback.format_exc()), end="", file=sys.stderr)
        return print_error(defect(error), as_json=as_json)


def say_stopped() -> int:
    """The user stopped the command."""
    print("stopped", file=sys.stderr)
    return STOPPED


def defect(error: Exception) -> Defect:
    """What nobody foresaw, as a sentence; where it was raised is in the traceback that may be asked for."""
    said = " ".join(str(error).split())[:300]
    return Defect(
        f"Lakeproof failed in a way that nobody foresaw: {type(error).__name__}{f', {said}' if said else ''}",
        hint=f"please report it, with what `{TRACEBACK}=1` before the command prints",
    )


def _of_the_system(error: OSError) -> LakeproofError:
    """What the system says about a file that a command reads or writes, as one of ours."""
    place = str(error.filename or "")
    if disk_is_full(error):
        return Unavailable("the disk is full", place=place, hint="make room and run it again")
    return InvalidInput(f"a file cannot be used: {error.strerror or error}", place=place)


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
