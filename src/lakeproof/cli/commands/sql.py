"""`lakeproof sql`: statements from the command line, a file, standard input, or a prompt."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakeproof.cli.output import DONE, console, print_json
from lakeproof.cli.prompt import SHOWN_ROWS, draw_result, prompt
from lakeproof.commit import Conflict
from lakeproof.commit.explain import because
from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.iceberg.tables.catalogs import DEFAULT_URI, DEFAULT_WAREHOUSE
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import Lake, connect
from lakeproof.spark.statements.results import run_for_result
from lakeproof.sql import split


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a file of statements, `;` between them (`-`: stdin)")
    parser.add_argument("-e", "--execute", metavar="SQL", help="the statements themselves")
    parser.add_argument("--json", action="store_true", help="one JSON list on stdout, one entry per statement")
    parser.add_argument(
        "--catalog", default=DEFAULT_URI, metavar="URI", help="where the tables are known (%(default)s)"
    )
    parser.add_argument(
        "--warehouse", default=DEFAULT_WAREHOUSE, metavar="PATH", help="where they are kept (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """The exit code: 0 done, 2 bad input, 1 a conflict, 3 an unknown outcome."""
    text = _text(args)
    if text is None:
        return prompt(_connected(args, bar=sys.stderr.isatty()).watched(on_rerun=tell_rerun))
    pieces = [piece.text for piece in split(text)]
    lake = _connected(args, bar=False, quick=args.execute is not None).watched(on_rerun=tell_rerun)
    return _json(lake, pieces) if args.json else _shown(lake, pieces)


def tell_rerun(conflict: Conflict) -> None:
    """The user hears on stderr that a command does its work again, and why."""
    print(f"note: runs again from the head: {because(conflict, 'command')} ({conflict.check})", file=sys.stderr)


def _text(args: argparse.Namespace) -> str | None:
    """The statements, or `None` for a prompt."""
    if args.execute is not None and args.file is not None:
        raise InvalidInput("give either a file or -e, not both")
    if args.execute is not None:
        return str(args.execute)
    if args.file in (None, "-"):
        return None if args.file is None and sys.stdin.isatty() else sys.stdin.read()
    try:
        return Path(args.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"the file cannot be read: {reason}", place=str(args.file)) from None


def _connected(args: argparse.Namespace, *, bar: bool, quick: bool = False) -> Lake:
    conf = {"spark.ui.showConsoleProgress": str(bar).lower()}
    session = build_session(args.warehouse, quick=quick, conf=conf)
    return connect(session, catalog=args.catalog, warehouse=args.warehouse)


def _json(lake: Lake, pieces: Sequence[str]) -> int:
    entries: list[dict[str, Any]] = []
    code = DONE
    for text in pieces:
        try:
            found = run_for_result(lake, text)
            entries.append({"statement": text, "columns": list(found.columns), "rows": found.rows})
        except LakeproofError as error:
            entries.append({"statement": text, "error": _described(error)})
            code = error.exit_code
            break
    print_json(entries)
    return code


def _shown(lake: Lake, pieces: Sequence[str]) -> int:
    out = console()
    for text in pieces:
        draw_result(out, run_for_result(lake, text, at_most=SHOWN_ROWS))
    return DONE


def _described(error: LakeproofError) -> dict[str, str]:
    return {
        "message": getattr(error, "message", str(error)),
        "place": getattr(error, "place", ""),
        "hint": getattr(error, "hint", ""),
    }
