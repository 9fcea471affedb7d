"""`lakeproof sql` from the outside: JSON, exit codes, errors in one voice, the prompt."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from lakeproof.cli import prompt as prompting
from lakeproof.cli.commands import sql as command
from lakeproof.cli.output import run_guarded
from lakeproof.spark.lake import Lake
from lakeproof.spark.statements.results import cancellable, run_for_result

pytestmark = pytest.mark.spark


@pytest.fixture
def cli(
    lake: Lake, warehouse: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command on the session of the tests; (exit code, stdout, stderr)."""
    monkeypatch.setattr(command, "_connected", lambda *_, **__: lake)

    def run(*words: str, stdin: str | None = None) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        args = parser.parse_args([*words, "--warehouse", str(warehouse)])
        code = run_guarded(lambda: command.run(args), as_json=args.json)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_json_is_one_list_with_plain_values(cli: Any, name: str) -> None:
    code, out, err = cli("--json", "-e", f"""-- a comment; not a statement
        create table {name} (id bigint, n decimal(5, 2), d date, ts timestamp, f double, b binary, l array<int>,
            s struct<a: int>, m map<string, int>, o boolean) using iceberg;
        insert into {name} values (9007199254740993, 1.5, date'2024-01-31', timestamp'2024-01-31 10:00:00.5', 0.5,
            X'0aff', array(1, null), named_struct('a', 7), map('k', 1), true), (null, null, null, null, double('nan'),
            null, null, null, null, null);
        select * from {name} order by id desc; """)  # fmt: skip
    assert (code, err) == (0, "")
    created, inserted, selected = json.loads(out)
    assert created["statement"].startswith(f"create table {name} (")
    assert (created["columns"], created["rows"]) == ([], [])
    assert inserted["rows"] == []
    assert selected["statement"] == f"select * from {name} order by id desc"
    assert selected["columns"] == ["id", "n", "d", "ts", "f", "b", "l", "s", "m", "o"]
    assert selected["rows"] == [
        [
            9007199254740993,
            "1.50",
            "2024-01-31",
            "2024-01-31 10:00:00.5",
            0.5,
            "0aff",
            [1, None],
            {"a": 7},
            {"k": 1},
            True,
        ],
        [None, None, None, None, "nan", None, None, None, None, None],
    ]


def test_a_refused_statement_ends_the_list_and_the_code_says_so(cli: Any, name: str) -> None:
    code, out, _ = cli("--json", "-e", f"select 1 as one; select nothing from {name}_not_there; select 2")
    first, second = json.loads(out)
    assert code == 2
    assert (first["columns"], first["rows"]) == (["one"], [[1]])
    assert set(second) == {"statement", "error"}
    assert "cannot be found" in second["error"]["message"]
    assert "line 1, column 21" in second["error"]["place"]
    code, out, _ = cli("--json", "-e", "select 'open")
    assert (code, json.loads(out)["error"]["message"]) == (2, "this string is not closed")


def test_people_see_tables_and_errors_without_tracebacks(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "statements.sql"
    file.write_text("select 1 as one, 'x [b]' as two;\nexplain select 1;\nselec 2")
    code, out, err = cli(str(file))
    assert code == 2
    assert "x [b]" in out
    assert "== Physical Plan ==" in out
    assert err.startswith("error: Syntax error at or near 'selec'")
    assert "Traceback" not in out + err
    code, out, _ = cli("-", stdin="select 5 as five")
    assert (code, "five" in out) == (0, True)
    code, _, err = cli(str(tmp_path / "nothing.sql"))
    assert (code, "cannot be read" in err) == (2, True)
    code, _, err = cli(str(file), "-e", "select 1")
    assert (code, "not both" in err) == (2, True)


def test_the_program_itself_in_a_fresh_process(tmp_path: Path) -> None:
    """Its own session, its own warehouse, nothing but JSON on stdout and nothing at all on stderr."""
    statement = "create table t (id int) using iceberg; insert into t values (1), (2); select count(*) from t"
    words = [sys.executable, "-m", "lakeproof.cli.main", "sql", "--json", "-e", statement]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [entry["rows"] for entry in json.loads(done.stdout)] == [[], [], [[2]]]
    assert (tmp_path / "lakehouse" / "catalog.db").exists()
    assert {each.name for each in tmp_path.iterdir()} == {"lakehouse"}


@contextmanager
def typed(lake: Lake) -> Iterator[tuple[PipeInput, Any, Console]]:
    with create_pipe_input() as keys:
        session = prompting.new_session(lake, InMemoryHistory(), input=keys, output=DummyOutput())
        yield keys, session, Console(file=io.StringIO(), width=200)


def test_the_prompt_takes_several_lines_answers_mistakes_and_leaves(lake: Lake) -> None:
    with typed(lake) as (keys, session, console):
        keys.send_text("select 40 +\r2 as answer;\rselec;\rexit\r")
        assert prompting.prompt(lake, session, console) == 0
        said = console.file.getvalue()  # type: ignore[attr-defined]
        assert "answer" in said
        assert "42" in said
        assert "Syntax error at or near 'selec'" in said
        assert session.history.get_strings()[0] == "select 40 +\n2 as answer;"


def test_the_prompt_tells_nulls_apart_aligns_numbers_and_helps(lake: Lake, name: str) -> None:
    with typed(lake) as (keys, session, console):
        keys.send_text(f"create table {name} (id int, s string) using iceberg;\rhelp\r")
        keys.send_text(f"insert into {name} values (1, ''), (200, null);\rselect * from {name} order by id;\rexit\r")
        assert prompting.prompt(lake, session, console) == 0
        said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "call system.rewrite_data_files" in said
    assert said.count("done, ") == 2  # the table, and the two rows
    assert "│   1 │      │" in said
    assert "│ 200 │ NULL │" in said
    assert "2 rows, " in said


def test_the_prompt_completes_tables_and_their_columns(lake: Lake, name: str) -> None:
    lake.sql(f"create table {name}_long (number int, word string) using iceberg")
    completer = prompting.NameCompleter(lake)

    def completed(text: str) -> list[str]:
        return [one.text for one in completer.get_completions(Document(text), CompleteEvent())]

    assert f"{name}_long" in completed(f"select * from {name}")
    assert "word" not in completed("select wo")
    assert "word" in completed(f"select * from {name}_long where wo")
    assert "select" in completed("sel")


def test_ctrl_c_cancels_the_statement_and_not_the_program(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = "select count(*) from range(0, 4, 1, 2) where java_method('java.lang.Thread', 'sleep', 20000L) is null"
    waited = threading.Event()
    join = threading.Thread.join

    def interrupted(self: threading.Thread, timeout: float | None = None) -> None:
        join(self, timeout)
        if self.is_alive() and not waited.is_set() and lake.spark.sparkContext.statusTracker().getActiveStageIds():
            waited.set()
            raise KeyboardInterrupt

    started = time.monotonic()
    monkeypatch.setattr(threading.Thread, "join", interrupted)
    assert cancellable(lake, lambda: run_for_result(lake, slow)) is None
    assert time.monotonic() - started < 60
    monkeypatch.undo()
    found = cancellable(lake, lambda: run_for_result(lake, "select 1 as one"))
    assert found is not None
    assert found.rows == [[1]]
