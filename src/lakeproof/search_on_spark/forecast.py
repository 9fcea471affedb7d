"""Before a search: does the cluster answer? And in the middle of a local one: would it do better on a cluster?"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from lakeproof.checker.limits import Progress
from lakeproof.errors import InvalidInput

MASTERS = ("local", "yarn", "k8s://", "spark://")
REACH_SECONDS = 5.0
TOO_MUCH = 0.7  # of the machine's memory
ENOUGH_TO_TELL = 0.1  # of it must be in use: before that, most of what is held is not states


def reached(master: str) -> str | None:
    """The address of this machine that a standalone master can answer to; `None`: the master is not such a one.

    A master that does not answer is refused here, in seconds: Spark itself tries for a minute, and then says little.
    """
    if not master.startswith("spark://"):
        if not master.startswith(MASTERS):
            hint = "write local[2], spark://HOST:7077, yarn or k8s://…"
            raise InvalidInput("This is not the URL of a Spark master", place=f"--master {master}", hint=hint)
        return None
    reason = "it names no host and port"
    for place in master.removeprefix("spark://").split(","):
        try:
            parts = urlsplit(f"//{place}")
            with socket.create_connection((parts.hostname or "", parts.port or 7077), REACH_SECONDS) as connection:
                return str(connection.getsockname()[0])
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    hint = "start it, or name one that runs with --master URL"
    raise InvalidInput(f"The Spark master cannot be reached: {reason}", place=master, hint=hint)


def machine_memory_mb() -> float:
    """The memory of this machine, or of the container that this process lives in."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return machine
    return min(machine, int(limit) / 1e6) if limit.isdecimal() else machine


def advice(progress: Progress, memory_mb: float) -> str:
    """What to say when a local search will not fit into the machine's memory; empty: nothing.

    The estimate is what the search holds now, times all states by those it has. While the frontier still grows nobody
    knows how many are left: at least those of the frontier.
    """
    if progress.memory_mb < ENOUGH_TO_TELL * memory_mb:
        return ""
    left = progress.frontier if progress.remaining_states is None else progress.remaining_states
    needed = progress.memory_mb * (progress.states + left) / max(progress.states, 1)
    if needed < TOO_MUCH * memory_mb:
        return ""
    return (
        f"this space needs about {needed / 1000:.1f} GB and this machine has {memory_mb / 1000:.1f} GB: "
        "--engine spark --checkpoint DIR searches it on a cluster, and goes on where it was stopped"
    )
