"""Where a model is explored: in this process, or by `--engine spark` on a cluster."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lakeproof.checker import Model, Progress, Verdict, check
from lakeproof.checker.search import Engine
from lakeproof.errors import InvalidInput
from lakeproof.report.terminal import ProgressBar
from lakeproof.search_on_spark.forecast import advice, machine_memory_mb, reached


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Which engine, and what the one on Spark needs."""
    names = ("local", "spark", "readable", "fast")
    parser.add_argument(
        "--engine", choices=names, default="local", metavar="local|spark", help="in this process, or as a Spark job"
    )
    parser.add_argument("--master", metavar="URL", help="of the Spark cluster (default local[*])")
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="--engine spark keeps its states here and goes on from them when started again",
    )


def explored(
    args: argparse.Namespace, model: Model, source: Callable[[], Model], version_of_model: str = ""
) -> Verdict:
    """The verdict of the engine that was asked for; `source` makes the model in other processes."""
    limits: dict[str, Any] = {
        "reductions": args.reductions == "on",
        "max_states": args.max_states,
        "max_seconds": args.max_seconds,
        "first": args.first,
        "require": args.require,
    }
    if args.engine == "spark":
        return _on_spark(args, source, version_of_model, limits)
    refuse_spark_options(args)
    engine: Engine = "auto" if args.engine == "local" else args.engine
    with ProgressBar() as bar:
        advised = Advised(bar)
        verdict = check(model, simulate=args.simulate, seed=args.seed, progress=advised, engine=engine, **limits)
    return replace(verdict, notes=(*verdict.notes, advised.word)) if advised.word else verdict


def refuse_spark_options(args: argparse.Namespace) -> None:
    """What only a search on Spark can make use of."""
    for flag in ("checkpoint", "master"):
        if getattr(args, flag) is not None:
            hint = "add --engine spark"
            raise InvalidInput(
                f"Only a search on Spark has a {flag}", place=f"--{flag} {getattr(args, flag)}", hint=hint
            )


class Advised:
    """Shows where a search stands, and says once that it will not fit into this machine."""

    def __init__(self, bar: ProgressBar) -> None:
        self.bar, self.memory_mb, self.word = bar, machine_memory_mb(), ""

    def __call__(self, progress: Progress) -> None:
        """Show this standing."""
        self.bar(progress)
        if not self.word:
            self.word = advice(progress, self.memory_mb)
            if self.word and self.bar.console.is_terminal:
                self.bar.console.print(self.word, markup=False)


def _on_spark(args: argparse.Namespace, source: Callable[[], Model], version_of_model: str, limits: Any) -> Verdict:
    if args.simulate:
        raise InvalidInput("Random runs are taken in this process", place="--simulate", hint="leave --engine spark out")
    from lakeproof.search_on_spark.jobs import cluster_of  # these take their time: only this engine pays for them
    from lakeproof.search_on_spark.search import check_on_spark
    from lakeproof.spark.jvm.session import build_session

    master = args.master or "local[*]"
    conf, sessions = {}, []
    address = reached(master)
    if address is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", address)  # workers on other machines must find their way back
        conf = {"spark.driver.host": address, "spark.driver.bindAddress": address}

    def session() -> Any:
        sessions.append(build_session(tempfile.gettempdir(), master=master, conf=conf))
        return sessions[-1]

    try:
        with ProgressBar() as bar:
            kept = {"checkpoint": args.checkpoint, "version_of_model": version_of_model}
            return check_on_spark(lambda: cluster_of(session), source, progress=bar, **kept, **limits)
    finally:
        for started in sessions:
            started.stop()
