"""The report page served on this machine alone, with the steps that can happen next as buttons.

The server keeps nothing: a walk is the list of choices in the address, and each request runs it again from the start.
"""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypedDict
from urllib.parse import parse_qs, urlsplit

from lakeproof.checker.faults import blaming
from lakeproof.checker.model import Model, Property, caption_of
from lakeproof.checker.runs import TakenStep, World, enabled, follow, start_of
from lakeproof.checker.verdicts.trace import Trace, trace_of
from lakeproof.errors import InvalidInput, LakeproofError
from lakeproof.report.page import html
from lakeproof.report.view import View, view_of
from lakeproof.report.words import readable

MAX_STEPS = 500  # of one walk
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")


class Choice(TypedDict):
    """A step that can happen next."""

    actor: str
    title: str
    label: str
    caption: str
    marks: list[str]


class Walk(TypedDict):
    """A walk so far: its view, and at each moment what can happen next and which properties do not hold."""

    view: View
    walk: list[int]
    choices: list[list[Choice]]
    broken: list[list[str]]


def take_choices(model: Model, moves: list[int]) -> Walk:
    """The walk that takes these choices, each a number among those open at its moment."""
    if len(moves) > MAX_STEPS:
        raise InvalidInput(f"a walk has at most {MAX_STEPS} steps", hint="take some back")
    world, run = start_of(model), list[TakenStep]()
    choices, broken, seen = list[list[Choice]](), list[list[str]](), set[str]()
    for number in [*moves, None]:
        ways = list(enabled(model, world))
        choices.append([_choice(model, way) for way in ways])
        broken.append([claim.name for claim in model.claims() if _is_broken(model, claim, world, ways, seen)])
        if number is None:
            break
        if number >= len(ways):
            raise InvalidInput(f"step {len(run) + 1} of the walk takes choice {number}, but there are {len(ways)}")
        run.append(ways[number])
        world = ways[number].world
        seen.update(ways[number].outcome.marks)
    return {"view": view_of(trace_of(model, run)), "walk": moves, "choices": choices, "broken": broken}


def moves_of(model: Model, trace: Trace) -> list[int]:
    """The choices that the trace takes on this model; a trace that is not open there is bad input."""
    world, numbers = start_of(model), list[int]()
    for step in follow(model, trace.moves):
        ways = [(way.process, way.step.name, way.outcome) for way in enabled(model, world)]
        numbers.append(ways.index((step.process, step.step.name, step.outcome)))
        world = step.world
    return numbers


def _choice(model: Model, way: TakenStep) -> Choice:
    return {
        "actor": model.processes[way.process].name,
        "title": readable(way.step.name),
        "label": way.outcome.label,
        "caption": caption_of(way.step),
        "marks": list(way.outcome.marks),
    }


def _is_broken(model: Model, claim: Property, world: World, ways: list[TakenStep], seen: set[str]) -> bool:
    """Whether a claim that must always hold does not hold at this moment."""
    if claim.kind != "always":
        return False
    if claim.subject == "mark":
        return claim.mark in seen
    if claim.subject == "rest":
        final = model.is_final
        return not ways and final is not None and not all(final(world.shared, own) for own in world.owns)
    assert claim.test is not None
    if claim.subject == "shared":
        return not claim.test(world.shared)
    if claim.subject == "each":
        return not all(claim.test(world.shared, own) for own in world.owns)
    return not claim.test(world.shared, world.owns)


def serve(
    model: Model,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    trace: Trace | None = None,
    open_browser: bool = False,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the explorer until Ctrl-C; `ready` is told its address once it answers."""
    with suppress(KeyboardInterrupt), server(model, host=host, port=port, trace=trace) as serving:
        address = address_of(serving)
        if ready is not None:
            ready(address)
        if open_browser:
            webbrowser.open(address)
        serving.serve_forever(poll_interval=0.2)


def server(model: Model, *, host: str = "127.0.0.1", port: int = 0, trace: Trace | None = None) -> ThreadingHTTPServer:
    """A server that answers with the page and with walks; it listens on the loopback address only."""
    if host not in LOOPBACK:
        raise InvalidInput(f"the explorer listens on this machine only, not on {host}", hint="leave the host out")
    with blaming(model.name):
        first = take_choices(model, moves_of(model, trace) if trace is not None else [])
    page = html(_frame(model, first["view"]), walk=first["walk"]).encode()
    handler = type("Handler", (_Handler,), {"model": model, "page": page})
    try:
        return ThreadingHTTPServer((host, port), handler)
    except OSError as error:
        message = f"the explorer cannot listen on port {port}: {error.strerror}"
        raise InvalidInput(message, place="--port", hint="leave the port out to get a free one") from None


def _frame(model: Model, view: View) -> View:
    """What the page says around every walk."""
    how = "Choose what happens next, or take a step back; every walk has its own address."
    return {**view, "title": f"Explore {model.name}", "tone": "", "summary": [how], "facts": [], "traces": []}


def address_of(serving: ThreadingHTTPServer) -> str:
    """Where to point a browser."""
    host, port = serving.server_address[:2]
    return f"http://{host!s}:{port}/"


class _Handler(BaseHTTPRequestHandler):
    model: Model
    page: bytes

    def do_GET(self) -> None:
        """Answer with the page, with a walk, or with what is wrong."""
        where = urlsplit(self.path)
        if (self.headers.get("Host") or "").rsplit(":", 1)[0] not in LOOPBACK:  # another site's name for this machine
            self._answer(403, {"error": {"message": "the explorer answers this machine only"}})
        elif where.path == "/":
            self._send(200, "text/html; charset=utf-8", self.page)
        elif where.path == "/walk":
            self._answer(*self._walk(parse_qs(where.query).get("moves", [""])[0]))
        else:
            self._answer(404, {"error": {"message": f"there is nothing at {where.path}"}})

    def _walk(self, moves: str) -> tuple[int, Any]:
        if not all(part.isascii() and part.isdigit() and len(part) <= 6 for part in moves.split(".") if moves):
            return 400, {"error": {"message": "a walk is numbers with dots between them"}}
        try:
            with blaming(self.model.name):
                return 200, take_choices(self.model, [int(part) for part in moves.split(".") if part])
        except LakeproofError as error:
            return 400, {"error": {"message": str(error).splitlines()[0]}}

    def _answer(self, status: int, value: Any) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not news."""
