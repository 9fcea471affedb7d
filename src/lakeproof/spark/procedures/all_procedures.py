"""Every procedure by its name."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakeproof.spark.engine import Engine
from lakeproof.spark.procedures.adopting import ADOPTING_PROCEDURES
from lakeproof.spark.procedures.calling import TEXT, Procedure, Row, run_procedure, table_named
from lakeproof.spark.procedures.files import FILE_PROCEDURES
from lakeproof.spark.procedures.snapshots import SNAPSHOT_PROCEDURES
from lakeproof.spark.procedures.statistics import STATISTICS_PROCEDURES
from lakeproof.spark.streams.change_feed import Feed, change_feed, chosen_window, create_view, identifier_of
from lakeproof.sql.statements import ProcedureCall


def _changelog(
    engine: Engine,
    table: str,
    changelog_view: str | None = None,
    options: dict[str, str] | None = None,
    net_changes: bool = False,
    compute_updates: bool | None = None,
    identifier_columns: tuple[str, ...] = (),
    remove_carryovers: bool = True,
) -> list[Row]:
    found = table_named(engine, table)
    wants_updates = bool(identifier_columns) if compute_updates is None else compute_updates
    updates = identifier_of(found, identifier_columns) if wants_updates else None
    feed = Feed(remove_carryovers, net_changes, updates)
    name = changelog_view or f"{found.name()[-1]}_changes"
    create_view(name, change_feed(engine, found, chosen_window(found, options or {}), feed))
    return [(name,)]


PROCEDURES: dict[str, Procedure] = {
    **SNAPSHOT_PROCEDURES,
    **FILE_PROCEDURES,
    **ADOPTING_PROCEDURES,
    **STATISTICS_PROCEDURES,
    "create_changelog_view": Procedure(
        (
            *("table", "changelog_view?", "options?", "compute_updates?", "identifier_columns?", "net_changes?"),
            "remove_carryovers?",
        ),
        (("changelog_view", TEXT),),
        _changelog,
    ),
}


def call_procedure(engine: Engine, called: ProcedureCall) -> DataFrame:
    """The result of CALL."""
    return run_procedure(engine, called, PROCEDURES)
