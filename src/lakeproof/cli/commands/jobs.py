"""`lakeproof jobs from-dbt MANIFEST`: a jobs file made from what another tool knows."""

from __future__ import annotations

import argparse
import json
import sys

from lakeproof.cli.files import read_text, write_text
from lakeproof.cli.output import DONE, print_json
from lakeproof.errors import InvalidInput
from lakeproof.jobs.from_dbt import incremental_models, jobs_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("source", choices=("from-dbt",), help="where the jobs come from")
    parser.add_argument("manifest", metavar="MANIFEST", help="dbt's target/manifest.json")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the jobs file here (default: print it)")
    parser.add_argument("--runs", type=int, default=2, metavar="N", help="runs of dbt at once (default 2)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Make the jobs file."""
    if args.runs < 1:
        raise InvalidInput("--runs must be at least 1", place=f"--runs {args.runs}")
    try:
        manifest = json.loads(read_text(args.manifest))
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The manifest is not JSON: {error.msg}", place=f"{args.manifest}:{error.lineno}") from None
    except RecursionError:
        raise InvalidInput("The manifest is nested too deeply", place=args.manifest) from None
    text = jobs_text(manifest, runs=args.runs, place=args.manifest)
    if args.output:
        write_text(args.output, text)
    if args.json:
        models = incremental_models(manifest, place=args.manifest)
        print_json({"models": [model.name for model in models], "file": args.output, "text": text})
    elif not args.output:
        sys.stdout.write(text)
    return DONE
