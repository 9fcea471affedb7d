"""The explorer: a walk is its choices, the server answers this machine alone and ends with Ctrl-C."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from report_models import long_walk, polite, undelete

from lakeproof.checker.model import Model, Outcome, Process, Step, always_of_all, always_of_each, never
from lakeproof.checker.search import check
from lakeproof.errors import InvalidInput, ModelError
from lakeproof.report import explorer


def test_at_the_start_everybody_may_begin() -> None:
    walk = explorer.take_choices(undelete(), [])
    assert [(choice["actor"], choice["title"], choice["label"]) for choice in walk["choices"][0]] == [
        ("recolour", "start", "UPDATE t SET color = 'blue' WHERE name = 'jack'"),
        ("privacy", "start", "DELETE FROM t WHERE name = 'jack'"),
    ]
    assert walk["broken"] == [[]]
    assert len(walk["view"]["traces"][0]["moments"]) == 1


def test_a_walk_along_a_trace_ends_where_the_trace_does() -> None:
    model = undelete()
    trace = check(model).trace
    assert trace is not None
    moves = explorer.moves_of(model, trace)
    walk = explorer.take_choices(model, moves)
    assert [moment["title"] for moment in walk["view"]["traces"][0]["moments"][1:]] == [
        step.step.replace("_", " ") for step in trace.steps
    ]
    assert walk["broken"] == [[]] * 8 + [["consistent_read"]]
    assert walk["choices"][-1] == []


def test_a_choice_that_is_not_there_is_bad_input() -> None:
    with pytest.raises(InvalidInput, match="step 2 of the walk takes choice 7, but there are 2"):
        explorer.take_choices(undelete(), [0, 7])


def test_a_walk_is_bounded() -> None:
    assert len(explorer.take_choices(polite(), [0, 0, 0, 0])["choices"]) == 5
    with pytest.raises(InvalidInput, match="at most 500 steps"):
        explorer.take_choices(polite(), [0] * 501)


def test_a_trace_of_another_model_is_bad_input() -> None:
    trace = check(polite()).trace
    assert trace is not None
    with pytest.raises(InvalidInput, match="step 1, 'alice want', is not open there"):
        explorer.moves_of(undelete(), trace)


def test_every_kind_of_always_property_is_looked_at_on_the_way() -> None:
    def go(shared: int, own: int) -> Iterator[Outcome]:
        """Goes on once."""
        if own == 0:
            yield Outcome(shared + 1, 1, marks=("went",))

    model = Model(
        name="once",
        shared=0,
        processes=(Process("p", 0), Process("q", 0)),
        steps=(Step("go", go),),
        properties=(
            never("nobody_went", "went"),
            always_of_each("own_is_zero", lambda shared, own: own == 0),
            always_of_all("not_both", lambda shared, owns: sum(owns) < 2),
        ),
        is_final=lambda shared, own: False,
    )
    assert explorer.take_choices(model, [0, 0])["broken"] == [
        [],
        ["nobody_went", "own_is_zero"],
        ["nobody_went", "own_is_zero", "not_both", "no_deadlock"],
    ]


@pytest.fixture
def serving() -> Iterator[ThreadingHTTPServer]:
    with explorer.server(undelete()) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: ThreadingHTTPServer, path: str, host: str = "") -> tuple[int, str, str]:
    """Status, content type and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def test_the_server_gives_the_page_and_walks(serving: ThreadingHTTPServer) -> None:
    status, kind, body = get(serving, "/")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert '<h1 class="">Explore toy table</h1>' in body
    assert "connect-src 'self'" in body
    status, kind, body = get(serving, "/walk?moves=0.0")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == json.loads(json.dumps(explorer.take_choices(undelete(), [0, 0])))


@pytest.mark.parametrize(
    ("path", "host", "status", "message"),
    [
        ("/walk?moves=9", "", 400, "step 1 of the walk takes choice 9, but there are 2"),
        ("/walk?moves=a", "", 400, "a walk is numbers with dots between them"),
        ("/walk?moves=0..0", "", 400, "a walk is numbers with dots between them"),
        ("/walk?moves=-1", "", 400, "a walk is numbers with dots between them"),
        ("/etc/passwd", "", 404, "there is nothing at /etc/passwd"),
        ("/", "evil.example:80", 403, "the explorer answers this machine only"),
    ],
)
def test_what_is_wrong_is_said(serving: ThreadingHTTPServer, path: str, host: str, status: int, message: str) -> None:
    found, _, body = get(serving, path, host)
    assert (found, json.loads(body)["error"]["message"]) == (status, message)


def test_it_listens_on_this_machine_only() -> None:
    with pytest.raises(InvalidInput, match=r"listens on this machine only, not on 0\.0\.0\.0"):
        explorer.server(undelete(), host="0.0.0.0")


def test_a_port_in_use_is_bad_input() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"cannot listen on port {port}"):
            explorer.server(undelete(), port=port)


def test_a_model_that_raises_is_blamed() -> None:
    def broken(shared: Any, own: Any) -> Iterator[Outcome]:
        raise ZeroDivisionError("oh")

    model = Model("bad", 0, (Process("p", 0),), (Step("broken", broken),))
    with pytest.raises(ModelError, match="model 'bad' raised ZeroDivisionError: oh"):
        explorer.server(model)


def test_ctrl_c_ends_it_cleanly() -> None:
    script = (
        "from report_models import long_walk; from lakeproof.report.explorer import serve;"
        "serve(long_walk(3), ready=lambda address: print(address, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also where a shell ignores it
    )
    assert process.stdout is not None
    address = process.stdout.readline()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\n", address)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=20)
    assert (process.returncode, out, errors) == (0, "", "")


def test_it_starts_from_a_trace() -> None:
    model = long_walk(3)
    with explorer.server(model, trace=check(model).trace) as server:
        page = server.RequestHandlerClass.page  # type: ignore[attr-defined]
    assert b'"walk":[0,0,0]}' in page
