"""A model from a user's own file, and what is said when the file is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lakeproof.checker import check, load_model
from lakeproof.errors import InvalidInput, ModelError

GOOD = '''
from dataclasses import dataclass
from lakeproof.checker import Model, Outcome, Process, Step, always

@dataclass(frozen=True)
class Own:
    left: int

def model(turns: int = 3, fast: bool = False, who: str = "a", names: tuple = ("x",), limit=None):
    def turn(shared, own):
        """Somebody takes a turn."""
        if own.left:
            yield Outcome(shared + 1, Own(own.left - 1))
    holds = always("small", lambda shared: shared < 10)
    given = {"turns": turns, "fast": fast, "who": who, "names": names, "limit": limit}
    return Model("turns", 0, (Process(who, Own(turns)),), (Step("turn", turn),), (holds,), parameters=given)
'''


def written(folder: Path, text: str) -> Path:
    """A model file with this text."""
    path = folder / "model.py"
    path.write_text(text)
    return path


def test_parameters_reach_the_model_as_what_their_defaults_are(tmp_path: Path) -> None:
    given = {"turns": "12", "fast": "on", "who": "b", "names": "p,q", "limit": "7"}
    model = load_model(written(tmp_path, GOOD), given)
    assert model.parameters == {"turns": 12, "fast": True, "who": "b", "names": ("p", "q"), "limit": "7"}
    verdict = check(model)
    assert (verdict.verdict, verdict.states, verdict.property("small").depth) == ("violated", 13, 10)
    assert verdict.to_json()["parameters"]["names"] == ["p", "q"]


@pytest.mark.parametrize(
    ("text", "given", "error", "message", "place", "hint"),
    [
        pytest.param("x = (", {}, InvalidInput, "not Python", "model.py:1", "", id="syntax"),
        pytest.param(
            "x = 1", {}, InvalidInput, "no function named model", "model.py", "define model", id="nothing there"
        ),
        pytest.param(
            "x = 1\n1 / 0", {}, ModelError, r"ZeroDivisionError.*\n.*model.py:2", None, None, id="fails at once"
        ),
        pytest.param(
            "def model():\n    raise ValueError('no')",
            {},
            ModelError,
            r"ValueError: no\n.*model.py:2",
            None,
            None,
            id="raises",
        ),
        pytest.param("def model(): return 3", {}, ModelError, "gives a int", None, None, id="gives something else"),
        pytest.param(GOOD, {"turn": "3"}, InvalidInput, "no parameter 'turn'", "model.py", "mean turns", id="typo"),
        pytest.param(
            GOOD, {"turns": "many"}, InvalidInput, "'many' is not a value", "--set turns", "3", id="not a number"
        ),
        pytest.param(
            GOOD, {"fast": "maybe"}, InvalidInput, "'maybe' is not a value", "--set fast", "False", id="no bool"
        ),
    ],
)
def test_a_wrong_file_is_told_with_its_place(
    tmp_path: Path, text: str, given: dict[str, object], error: type, message: str, place: str, hint: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        load_model(written(tmp_path, text), given)
    if isinstance(caught.value, InvalidInput):
        assert caught.value.place.endswith(place)
        assert hint in caught.value.hint


def test_a_missing_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        load_model(tmp_path / "nothing.py", {})


def test_an_error_in_a_step_names_file_and_line(tmp_path: Path) -> None:
    broken = GOOD.replace("if own.left:", "if own.rigth:")
    with pytest.raises(
        ModelError, match=r"AttributeError: 'Own' object has no attribute 'rigth'\n.*model.py:12, in turn"
    ):
        check(load_model(written(tmp_path, broken), {}))


def test_the_example_asserts_its_own_result() -> None:
    example = Path(__file__).parents[2] / "examples" / "two_phase_commit.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "holds" in done.stdout
    assert check(load_model(example, {"participants": "2", "forgetful": "yes"})).verdict == "violated"


def test_the_how_to_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-model.md").read_text()
    first, *later = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    path = tmp_path / "lease.py"
    path.write_text(first)
    assert check(load_model(path, {})).property("no_stale_write").verdict == "violated"
    assert check(load_model(path, {"fenced": "yes", "clients": "3"})).verdict == "holds"
    assert len(later) == 2
    names: dict[str, object] = {}
    for code in (first, *later):
        exec(compile(code, str(path), "exec"), names)
