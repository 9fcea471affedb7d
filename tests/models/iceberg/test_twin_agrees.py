"""The shipped model gives the verdicts of the literal twin, and where it does not, the one reason is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from iceberg_runs import holds, searched, violated
from literal_twin import KNOWN_ARTEFACTS, Configuration, configurations, verdicts

from lakeproof.format import TableShape, TableState, live_rows
from lakeproof.models.iceberg import starting

CONFIGURATIONS = [
    c._replace(spec_artefacts=False) if "ConsistentRead" in KNOWN_ARTEFACTS.get(c, ()) else c for c in configurations()
]
"""Without the specification's artefact that lets copy-on-write forget delete files, where it matters."""
SIZES = ("writers", "ops", "compactions", "keys", "colours", "letters")


def parameters(c: Configuration) -> dict[str, Any]:
    """The same configuration, as the shipped model names it."""
    keys, colours, letters = (",".join(values) for values in c.columns)
    return {
        **{name: getattr(c, name) for name in ("num_writers", "max_write_ops", "max_compactions", "isolation")},
        **{name: getattr(c, name) for name in ("update_mode", "delete_mode", "allow_updates", "allow_deletes")},
        **{"col1_values": keys, "col2_values": colours, "col3_values": letters, "measure_aborts": False},
    }


def policy(c: Configuration) -> str:
    """The policy that asks what the twin asks."""
    return "iceberg-spark-fixed" if c.delete_check else "iceberg-spark"


def named(c: Configuration) -> str:
    """A configuration in words."""
    sizes = " ".join(f"{number} {what}" for number, what in zip(c[:6], SIZES, strict=True))
    modes = f"{c.update_mode} {c.delete_mode} {c.isolation}"
    more = " checked" * c.delete_check + " no updates" * (not c.allow_updates) + " no deletes" * (not c.allow_deletes)
    return f"{sizes} {modes}{more}"


def deletes_an_id_that_came_back(c: Configuration) -> bool:
    """Two DELETEs of one row, and an INSERT of its id between their commits: the twin takes the id for the row.

    Its history says that the second DELETE removed the id, so it takes the new row for one that should be gone. At
    snapshot isolation the DELETE did not see the new row: a phantom, which that level allows.
    """
    unchecked = c.delete_mode == "merge-on-read" and c.isolation == "snapshot" and not c.delete_check
    updates = c.allow_updates and c.update_mode == "merge-on-read"  # then there is the undelete, which both find
    return unchecked and c.allow_deletes and not updates and c.num_writers > 1 and c.max_write_ops >= 4


@pytest.fixture
def _compaction_leaves_files_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The specification's compaction replaces the files that it found rows in; Iceberg's also those without any."""
    right = starting.rewritten

    def rewritten(table: TableState, files: Sequence[str], shape: TableShape, *rest: Any, **more: Any) -> Any:
        alive = {file.path for file, bits in live_rows(table, shape.columns) if bits}
        return right(table, [path for path in files if path in alive], shape, *rest, **more)

    monkeypatch.setattr(starting, "rewritten", rewritten)


def test_there_are_a_hundred_configurations_to_agree_on() -> None:
    assert sum(not deletes_an_id_that_came_back(c) for c in CONFIGURATIONS) >= 100


@pytest.mark.slow
@pytest.mark.parametrize("c", CONFIGURATIONS, ids=named)
@pytest.mark.usefixtures("_compaction_leaves_files_without_rows")
def test_the_shipped_model_gives_the_twins_verdicts(c: Configuration) -> None:
    twin = verdicts(**c._asdict())
    shipped = searched(policy(c), **parameters(c), dangling="literal")
    assert twin.exhausted
    assert shipped.exhausted
    assert shipped.states < twin.states
    expected = {name: depth for name, depth in twin.violated.items() if name != "AllSnapshotsCommitted"}
    if deletes_an_id_that_came_back(c):
        assert expected.pop("ConsistentRead") == 18
    found = [p for p in shipped.properties if p.seed_name and p.verdict != "holds"]
    assert {p.seed_name for p in found} == set(expected)
    assert shipped.property("consistent_read").depth == expected.get("ConsistentRead")


@pytest.mark.slow
def test_where_files_without_rows_are_compacted_too_readers_see_the_same() -> None:
    """What the compaction leaves alone changes only which delete files point nowhere, never what is read."""
    for c in CONFIGURATIONS:
        if c.max_compactions:
            undelete = c.isolation == "snapshot" and c.max_write_ops > 2 and c.num_writers > 1
            undelete = undelete and c.update_mode == c.delete_mode == "merge-on-read" and not c.delete_check
            assert holds(searched(policy(c), **parameters(c))) is not undelete, named(c)


def test_a_delete_file_points_nowhere_when_a_file_without_rows_is_compacted() -> None:
    c = Configuration(max_write_ops=2, max_compactions=1)
    assert verdicts(**c._asdict()).violated == {}
    literal = searched("iceberg-spark", **parameters(c), dangling="literal")
    assert violated(literal) == {"no_dangling_delete_files"}
    assert literal.property("no_dangling_delete_files").alone
    assert holds(searched("iceberg-spark", **parameters(c)))


def test_the_shipped_model_calls_an_id_that_came_back_a_phantom() -> None:
    c = Configuration(max_write_ops=4, num_colours=1, allow_updates=False)
    assert deletes_an_id_that_came_back(c)
    assert verdicts(**c._asdict()).violated == {"ConsistentRead": 18}
    assert holds(searched("iceberg-spark", **parameters(c)))
