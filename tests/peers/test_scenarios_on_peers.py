"""Every scenario that another engine can take, on that engine: its policy's text is what really happens.

Where it is not, the difference is listed here with its reason. Apache Iceberg's commands are held in their scan by a
gate in the WHERE: a scenario applies if each of its commands can be held, and none stops between validation and swap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lakeproof.commit.policy_text import named_policy
from lakeproof.replay.iceberg_spark_tables import AgainstIcebergSpark
from lakeproof.replay.pyiceberg_tables import AgainstPyiceberg
from lakeproof.replay.replaying import CONF, Make
from lakeproof.replay.scenario_runner import AgainstTables
from lakeproof.replay.sql_process import EngineMissing, SqlProcess
from lakeproof.scenarios.against_model import DoesNotApply
from lakeproof.scenarios.run import find_differences, policies_of
from lakeproof.scenarios.text import Scenario, ScenarioStep, parse_scenario
from lakeproof.spark.jvm.session import build_session
from lakeproof.spark.lake import connect

pytestmark = [pytest.mark.peer, pytest.mark.spark, pytest.mark.slow]
FOLDER = Path(__file__).resolve().parents[1] / "scenarios"
KNOWN = {
    ("pyiceberg", "seed_004_partitions_keep_mor_writers_apart"): (
        "a program that replaces files gives PyIceberg no predicate; at serializable every new file is then a conflict",
        [
            "line 10, pyiceberg: w2 commit should be 'ok', is 'conflict'",
            "line 11, pyiceberg: rows should be 'jack blue A; sarah plum B', is 'jack blue A; sarah green B'",
        ],
    ),
}
"""Where an engine does not do what its policy says: why, and what is seen."""
SHOWN = {
    "iceberg-spark": {"undelete", "seed_000_counterexample", "write_skew", "write_skew_copy_on_write"},
    "pyiceberg": {"lost_delete", "lost_delete_by_compaction"},
}
"""The anomalies that must be seen for real: the texts say that the commit is made and which rows are wrong then."""


def scenarios(policy: str) -> list[Scenario]:
    """Those with commands of rows; the others are calls of the table API, which no engine's SQL has."""
    found = [parse_scenario(path.read_text(encoding="utf-8"), name=path.stem) for path in sorted(FOLDER.glob("*.txt"))]
    return [one for one in found if policy in policies_of(one) and not one.files and not calls(one)]


def calls(scenario: Scenario) -> bool:
    return any(isinstance(step, ScenarioStep) and step.call is not None for step in scenario.steps)


@pytest.fixture(scope="module")
def makers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Make]]:
    """What makes a runner of each engine; both see one catalog."""
    folder = tmp_path_factory.mktemp("peers")
    with ExitStack() as after:
        try:
            process = after.enter_context(SqlProcess("apache-iceberg", folder / "catalog.db", str(folder)))
        except EngineMissing as error:
            pytest.skip(error.message)
        session = build_session(str(folder), master="local[2]", quick=True, conf=CONF)
        after.callback(session.stop)
        lake = connect(session, catalog=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        yield {
            "iceberg-spark": lambda scenario, policy: AgainstIcebergSpark(process, lake, scenario, policy),
            "pyiceberg": lambda scenario, policy: AgainstPyiceberg(lake, scenario, policy),
        }


def run(make: Make, scenario: Scenario, engine: str) -> list[str]:
    made: list[AgainstTables] = []

    def kept(*arguments: object) -> AgainstTables:
        made.append(make(*arguments))
        return made[-1]

    try:
        return [str(one) for one in find_differences(scenario, named_policy(engine), kept)]
    finally:
        for runner in made:
            runner.close()


@pytest.mark.parametrize("engine", ["iceberg-spark", "pyiceberg"])
def test_what_an_engine_does_is_what_its_policy_says(makers: dict[str, Make], engine: str) -> None:
    differ: dict[str, list[str]] = {}
    applied: set[str] = set()
    for scenario in scenarios(engine):
        try:
            found = run(makers[engine], scenario, engine)
        except DoesNotApply as error:
            print(f"{engine} does not take {scenario.name}: {error.message}")
            continue
        applied.add(scenario.name)
        if found:
            differ[scenario.name] = found
            print(f"{engine} differs in {scenario.name}: {'; '.join(found)}")
    print(f"{engine}: {len(applied)} scenarios taken")
    assert len(applied) >= 30
    assert applied >= SHOWN[engine]
    assert differ == {name: seen for (who, name), (_, seen) in KNOWN.items() if who == engine}
