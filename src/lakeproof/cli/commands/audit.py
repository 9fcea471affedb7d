"""`lakeproof audit TABLE`: what happened to a table, whoever wrote it, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from lakeproof.audit import Audit, Depth, audit_raw
from lakeproof.audit.findings import Finding
from lakeproof.audit.kinds import KINDS, SEVERITIES
from lakeproof.cli.audit_page import audit_page
from lakeproof.cli.files import read_policy
from lakeproof.cli.output import DIFFERS, DONE, console, print_json
from lakeproof.errors import InvalidInput, hide_secrets
from lakeproof.iceberg.inspecting.opening import RawTable, open_by_name, open_by_place
from lakeproof.iceberg.tables.catalogs import DEFAULT_URI, DEFAULT_WAREHOUSE, open_catalog
from lakeproof.iceberg.tables.tables import all_tables
from lakeproof.iceberg.upkeep.table_on_disk import is_place

MOST_SNAPSHOTS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="a table's name, its folder, or a *.metadata.json")
    parser.add_argument("--all", action="store_true", help="every table of the catalog")
    parser.add_argument("--deep", action="store_true", help="open every file: footers, delete files, vectors")
    parser.add_argument("--checksums", action="store_true", help="read every page of every file (includes --deep)")
    parser.add_argument("--policy", default="lakeproof", metavar="NAME|FILE.toml", help="the rules to judge by")
    add_catalog(parser)
    parser.add_argument("--report", metavar="F.html", help="write the findings as a page")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def add_catalog(parser: argparse.ArgumentParser) -> None:
    """Where tables are."""
    parser.add_argument("--catalog", default=DEFAULT_URI, metavar="URI", help="where tables are known (%(default)s)")
    parser.add_argument(
        "--warehouse", default=DEFAULT_WAREHOUSE, metavar="PATH", help="where they are kept (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Audit the table, or all of them; exit 1 where something was found."""
    if bool(args.table) is args.all:
        raise InvalidInput("name one table, or say --all", hint="lakeproof audit people")
    policy, depth = read_policy(args.policy), Depth(args.deep or args.checksums, args.checksums)
    found = [audit_raw(raw, policy, depth=depth) for raw in tables_of(args)]
    if args.report:
        _write_page(Path(args.report), found)
    if args.json:
        whole = {"catalog": hide_secrets(args.catalog), "tables": [each.to_json() for each in found]}
        print_json(whole if args.all else found[0].to_json())
    else:
        for each in found:
            show(each)
    return DIFFERS if any(each.findings for each in found) else DONE


def tables_of(args: argparse.Namespace) -> Iterator[RawTable]:
    """The tables that the arguments name."""
    if args.table and is_place(args.table):
        yield open_by_place(args.table)
        return
    _require_catalog(args.catalog)
    catalog = open_catalog(args.catalog, args.warehouse)
    for name in [args.table] if args.table else all_tables(catalog):
        yield open_by_name(catalog, name)


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
        _show_finding(one, found.policy)
    for note in found.notes:
        out.print(f"\n{note}", markup=False)
    if found.assumed:
        out.print(f"\n{found.assumed} commits do not record what they read: of each its parent was assumed.")


def _show_finding(found: Finding, policy: str) -> None:
    out, one = console(), found.told()
    out.print(f"\n[bold]{one.kind}[/bold]  {KINDS[one.kind].words}")
    out.print(f"  because  {one.because}", markup=False)
    if one.check:
        out.print(f"  check    {one.check} of {policy}", markup=False)
    for file in one.files[:5]:
        out.print(f"  file     {file}", markup=False)
    if one.snapshots:
        more = len(one.snapshots) - MOST_SNAPSHOTS
        listed = ", ".join(map(str, one.snapshots[-MOST_SNAPSHOTS:]))
        out.print(f"  in       {listed}{f' and {more} older' if more > 0 else ''}", markup=False)
    out.print(f"  rows     {SEVERITIES[one.severity]}", markup=False)
    out.print(f"  advice   {one.advice}", markup=False)
    if one.note:
        out.print(f"  note     {one.note}", markup=False)


def _write_page(path: Path, found: list[Audit]) -> None:
    try:
        path.write_text(audit_page(found), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The page cannot be written: {error.strerror}", place=str(path)) from None
