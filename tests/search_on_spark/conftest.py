"""Models and oracles of the checker's tests serve here too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "checker"))
