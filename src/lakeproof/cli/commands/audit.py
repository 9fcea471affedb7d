"""`lakeproof audit TABLE`: what happened to a table, whoever wrote it, and what to do."""

from __future__ import annotations

import argparse
from pathlib import Path

from lakeproof.audit import Audit, audit
from lakeproof.audit.findings import KINDS
from lakeproof.cli.audit_page import audit_page
from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.errors import InvalidInput
from lakeproof.iceberg.tables.catalogs import DEFAULT_URI, DEFAULT_WAREHOUSE, open_catalog
from lakeproof.iceberg.tables.tables import load_table
from lakeproof.iceberg.upkeep.table_on_disk import is_place, table_at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("table", metavar="TABLE", help="a table's name, its folder, or a *.metadata.json")
    parser.add_argument("--policy", default="lakeproof", metavar="NAME|FILE.toml", help="the rules to judge by")
    parser.add_argument("--catalog", default=DEFAULT_URI, metavar="URI", help="where tables are known (%(default)s)")
    parser.add_argument(
        "--warehouse", default=DEFAULT_WAREHOUSE, metavar="PATH", help="where they are kept (%(default)s)"
    )
    parser.add_argument("--report", metavar="F.html", help="write the findings as a page")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def run(args: argparse.Namespace) -> int:
    """Audit the table; exit 1 where something was found."""
    policy = read_policy(args.policy)
    if is_place(args.table):
        table = table_at(args.table)
    else:
        _require_catalog(args.catalog)
        table = load_table(open_catalog(args.catalog, args.warehouse), args.table)
    found = audit(table, policy, name=args.table)
    if args.report:
        _write_page(Path(args.report), found)
    if args.json:
        print_json(found.to_json())
    else:
        show(found)
    return DIFFERS if found.findings else DONE


def _require_catalog(uri: str) -> None:
    """To look does not make a catalog where there is none."""
    file = Path(uri.removeprefix("sqlite:///").partition("?")[0])
    if uri.startswith("sqlite:///") and not file.exists():
        hint = "name it with --catalog URI, or name the table's folder"
        raise InvalidInput("There is no catalog", place=str(file), hint=hint)


def show(found: Audit) -> None:
    """The findings, for people."""
    out = console()
    count = len(found.findings)
    out.print(f"{found.table}: {found.snapshots} snapshots, {count or 'no'} finding{'s' * (count != 1)}", markup=False)
    for one in found.findings:
        out.print(f"\n[bold]{one.kind}[/bold]  {KINDS[one.kind]}")
        out.print(f"  because  {one.because}", markup=False)
        if one.check:
            out.print(f"  check    {one.check} of {found.policy}", markup=False)
        for file in one.files[:5]:
            out.print(f"  file     {file}", markup=False)
        out.print(f"  do       {one.do}", markup=False)
        if one.note:
            out.print(f"  note     {one.note}", markup=False)
    if found.assumed:
        out.print(f"\n{found.assumed} commits do not record what they read: of each its parent was assumed.")


def _write_page(path: Path, found: Audit) -> None:
    try:
        path.write_text(audit_page(found), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The page cannot be written: {error.strerror}", place=str(path)) from None
