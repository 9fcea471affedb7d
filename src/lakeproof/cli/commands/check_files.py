"""`lakeproof-check-files FILE…`: each jobs file by itself, the worst exit code counts; what pre-commit calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lakeproof.cli.main import main as lakeproof


def main(argv: Sequence[str] | None = None) -> int:
    """Check every file; options go before the files."""
    words = list(sys.argv[1:] if argv is None else argv)
    files = [word for word in words if word.endswith(".sql")]
    options = [word for word in words if word not in files]
    codes = []
    for file in files:
        print(f"== {file}", flush=True)
        codes.append(lakeproof(["check", file, *options]))
    return max(codes, default=0)


if __name__ == "__main__":
    raise SystemExit(main())
