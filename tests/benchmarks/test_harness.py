"""The harness measures what it says: sides in turn, medians, ratios to the side beside, nothing lost on disk."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import AREAS
from benchmarks.goals import GOALS, Reached, missed, reached, told
from benchmarks.harness import Clock, Line, Timing, cpu_ratios, interleaved, ratios
from benchmarks.page import section
from benchmarks.plots import measured, plot
from benchmarks.results import Result, Stopwatch, kept, load, ratio, rows_of, save, seconds
from benchmarks.session import ICEBERG, OURS, PLAIN

from lakeproof.errors import InvalidInput


def lines() -> tuple[Line, ...]:
    return (
        Line("scan", "ours", "plain", (Timing(1.0, 0.5), Timing(2.0, 0.6), Timing(9.0, 0.7)), {"files": 1200}),
        Line("scan", "plain", "plain", (Timing(2.0, 1.0), Timing(2.0, 1.0), Timing(3.0, 1.0))),
        Line("count", "ours", "plain", (Timing(0.001, 0.01),)),
        Line("count", "plain", "plain", (Timing(0.002, 0.01),)),
    )


def result() -> Result:
    return Result("scans", "Words.", False, "2026-11-02", 3.0, "2 cores", (0.5, 1.0), lines(), ("A note.",))


def test_sides_take_turns_and_another_begins_each_round() -> None:
    order: list[str] = []
    sides = {"a": lambda: order.append("a"), "b": lambda: order.append("b")}
    taken = interleaved("case", sides, beside="a", clock=Clock(), repetitions=2, warm_up=0)
    assert order == ["a", "b", "b", "a"]
    assert [(line.side, len(line.timings)) for line in taken.lines] == [("a", 2), ("b", 2)]


def test_the_first_rounds_warm_up_and_are_not_kept() -> None:
    count: list[int] = []
    taken = interleaved("c", {"a": lambda: count.append(1)}, beside="a", clock=Clock(), repetitions=3, warm_up=2)
    assert (len(count), len(taken.lines[0].timings)) == (5, 3)


def test_a_side_that_cannot_is_left_out_with_a_note() -> None:
    def cannot() -> None:
        raise InvalidInput("not there yet", hint="wait")

    taken = interleaved("c", {"a": lambda: 1, "b": cannot}, beside="a", clock=Clock(), repetitions=2)
    assert [line.side for line in taken.lines] == ["a"]
    assert taken.notes == ("c, b: not there yet.",)


def test_a_ratio_is_the_median_over_rounds_not_the_ratio_of_medians() -> None:
    assert ratios(lines()) == {("scan", "ours"): 1.0, ("count", "ours"): 0.5}
    assert cpu_ratios(lines()) == {("scan", "ours"): 0.6}, "too little processor time says nothing"


def test_figures_survive_on_disk(tmp_path: Path) -> None:
    path = save(result(), tmp_path)
    assert path.name == "scans.json"
    assert load(path) == result()
    assert kept(tmp_path) == [result()]


def test_a_table_leaves_out_what_nobody_fills() -> None:
    head, rows = rows_of(result())
    assert head == ["case", "side", "time", "fastest – slowest", "CPU", "ratio", "CPU ratio", "files"]
    assert rows[0] == ["scan", "ours", "2 s", "1 s – 9 s", "0.6 s", "1.00", "0.60", "1,200"]
    assert rows[1][:2] == ["", "plain"]
    assert rows[1][5] == "1"
    assert [seconds(0.0012), seconds(12.345), ratio(0.0123)] == ["1.2 ms", "12.3 s", "0.012"]


def test_a_section_says_where_it_was_taken() -> None:
    text = section(result())
    assert "## Scans\n" in text
    assert "- A note.\n" in text
    assert text.rstrip().endswith("2 cores; 2026-11-02, 3 s in all, load 0.5 – 1.0.")


def test_a_plot_is_the_same_for_the_same_figures(tmp_path: Path) -> None:
    assert measured(result())["scan", "plain"] == 1.0
    for name in ("a.svg", "b.svg"):
        plot(result(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"</svg>" in (tmp_path / "a.svg").read_bytes()


def test_a_stopwatch_notes_area_and_load() -> None:
    made = Stopwatch("scans", "Words.", full=True).result(lines(), ["twice", "twice"])
    assert (made.name, made.notes, made.full) == ("scans-full", ("twice",), True)
    assert made.machine.split()[1] == "cores,"


def test_goals_are_met_or_missed_and_by_how_much() -> None:
    def timed(case: str, side: str, wall: float, cpu: float) -> Line:
        return Line(case, side, PLAIN, (Timing(wall, cpu),) * 3)

    taken = (
        timed("full scan", OURS, 1.05, 9.0),
        timed("full scan", PLAIN, 1.0, 1.0),
        timed("count(*)", OURS, 0.5, 0.5),
        timed("count(*)", PLAIN, 1.0, 1.0),
        timed("no goal", OURS, 5.0, 5.0),
    )
    assert told(reached("scans", taken)) == [
        ["full scan", "wall", PLAIN, "1.05", "≤ 1.05", "met"],
        ["count(*)", "wall", PLAIN, "0.50", "≤ 0.4", "missed by 25%"],
    ]
    rows = (timed("DELETE of 1 %, merge-on-read", OURS, 0.5, 0.9), timed("DELETE of 1 %, merge-on-read", ICEBERG, 1, 1))
    assert [each.is_met for each in reached("rows", rows)] == [True, False], "both clocks count"
    many = {OURS: 16.9, ICEBERG: 4.0}
    commits = tuple(
        Line("INSERT one row, 8 writers", side, ICEBERG, (Timing(1.0),), {"commits/s": n}) for side, n in many.items()
    )
    assert [(each.found, each.is_met) for each in reached("commits", commits)] == [(4.225, True)]


def test_the_area_of_every_goal_is_measured() -> None:
    assert {goal.area for goal in GOALS} <= set(AREAS)


def test_the_page_says_what_stops_a_goal_that_is_missed() -> None:
    met = Reached("full scan", "wall", "plain Parquet", 1.0, 1.05)
    lost = [
        Reached("UPDATE", clock, "Apache Iceberg", found, 0.7, stops="It waits.")
        for clock, found in (("wall", 0.83), ("CPU", 0.81))
    ]
    few = Reached("INSERT", "commits/s", "Apache Iceberg", 3.1, 4, True)
    assert missed([met, *lost, few]) == [
        "1 of 4 goals are met.",
        "- UPDATE: 0.83 wall, 0.81 CPU; at most 0.7 of Apache Iceberg was asked. It waits.",
        "- INSERT: 3.10 commits/s; at least 4 of Apache Iceberg was asked.",
    ]
    assert missed([]) == []
