"""A user's own model: a Python file that defines `model(**parameters)` and gives a `Model`."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from lakeproof.checker.faults import blaming
from lakeproof.checker.model import Model
from lakeproof.errors import InvalidInput, ModelError

TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def load_model(path: str | Path, parameters: Mapping[str, object]) -> Model:
    """The model that the file's `model` function gives for these parameters; texts become what the default is."""
    path = Path(path)
    make = _model_function(path)
    arguments = {}
    for name, value in parameters.items():
        parameter = _parameter(make, name.replace("-", "_"), path)
        arguments[parameter.name] = _converted(parameter, value)
    with blaming(path.name):
        model = make(**arguments)
    if not isinstance(model, Model):
        raise ModelError(f"model() in {path} gives a {type(model).__name__}, not a lakeproof.checker.Model")
    return model


def _model_function(path: Path) -> Callable[..., Any]:
    module = _module(path)
    make = getattr(module, "model", None)
    if not callable(make):
        hint = "define model(**parameters) and let it return a lakeproof.checker.Model"
        raise InvalidInput("the file defines no function named model", place=str(path), hint=hint)
    return make  # type: ignore[no-any-return]


def _module(path: Path) -> ModuleType:
    try:
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
    except OSError as error:
        raise InvalidInput(f"the model cannot be read: {error.strerror}", place=str(path)) from None
    except SyntaxError as error:
        raise InvalidInput(f"the model is not Python: {error.msg}", place=f"{path}:{error.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # no UTF-8, a zero byte, a thousand parentheses
        raise InvalidInput(f"the model is not Python: {error or 'it is nested too deeply'}", place=str(path)) from None
    module = ModuleType(f"lakeproof_model_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    with blaming(path.name):
        exec(code, module.__dict__)
    return module


def _parameter(make: Callable[..., Any], name: str, path: Path) -> inspect.Parameter:
    parameters = inspect.signature(make).parameters
    if name in parameters and parameters[name].kind not in (
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    ):
        return parameters[name]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    near = difflib.get_close_matches(name, parameters, 1)
    known = ", ".join(parameters) or "none"
    hint = f"did you mean {near[0]}?" if near else f"it has {known}"
    raise InvalidInput(f"the model has no parameter {name!r}", place=str(path), hint=hint)


def _converted(parameter: inspect.Parameter, value: object) -> object:
    if not isinstance(value, str) or parameter.default in (inspect.Parameter.empty, None):
        return value
    wanted = type(parameter.default)
    if wanted is bool and value.lower() in TRUE + FALSE:
        return value.lower() in TRUE
    if wanted in (int, float):
        try:
            return wanted(value)
        except ValueError:
            pass
    if wanted in (bool, int, float):
        hint = f"give it like its default, {parameter.default!r}"
        raise InvalidInput(f"{value!r} is not a value for {parameter.name}", place=f"--set {parameter.name}", hint=hint)
    return tuple(value.split(",")) if wanted is tuple else value
