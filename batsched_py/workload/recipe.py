"""Logs as a plan writes them: a file or a model, and changes; and fitted models as files, to be shared.

{file = "HPC2N.swf.gz", changes = ["period start=2003-01-01 end=2003-02-01", "load factor=1.2"]}
{model = "lublin", jobs = 10000, seed = 1, types = "batch"}
{model = "realistic", like = "HPC2N.swf.gz", jobs = 50000, seed = 3}
{model = "realistic", fitted = "hpc2n.json", jobs = 50000, seed = 3}
"""

import dataclasses
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.output_files import write_file
from batsched_py.protocol.shown import shown
from batsched_py.settings import pairs_in
from batsched_py.trust import distrusting
from batsched_py.workload.changes import change_log
from batsched_py.workload.models import MODELS, LearningModel, Progress
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.log import SwfLog

FORMAT: Final = "batsched-py model"
VERSION: Final = 1

#: How many jobs are generated to check the parameters in a file.
_TRIAL: Final = 20


class _File(Struct):
    format: str
    version: int
    model: str
    options: dict[str, Any]
    parameters: msgspec.Raw


def save_model(path: str | Path, model: LearningModel) -> None:
    """Write a fitted model as JSON."""
    options = {
        field.name: getattr(model, field.name)
        for field in dataclasses.fields(model)  # type: ignore[arg-type]
        if field.init
    }
    parameters = msgspec.Raw(msgspec.json.encode(model.parameters))
    content = msgspec.json.encode(_File(FORMAT, VERSION, model.name, options, parameters))
    write_file(path, content + b"\n")


#: What numbers that do not fit a model may end in, when they are read or used.
_UNFIT = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError, msgspec.MsgspecError)


def load_model(path: str | Path, options: dict[str, str] | None = None) -> LearningModel:
    """Read a fitted model, and try it; ``options`` replace those that it was saved with."""
    try:
        content = msgspec.json.decode(read_input(path), type=_File)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a fitted model: {error}") from None
    if (content.format, content.version) != (FORMAT, VERSION):
        raise InputError(
            f"{path}: {content.format!r}, version {content.version}, is not {FORMAT!r}, version {VERSION}"
        )
    with distrusting(f"{path} is a fitted model, and the model that it names must be an installed one"):
        model = MODELS.create(content.model, content.options | (options or {}))
    if not isinstance(model, LearningModel):
        raise InputError(f"{path}: the model {content.model} learns nothing")
    kind = typing.get_type_hints(type(model))["parameters"]
    try:
        model.parameters = msgspec.json.decode(content.parameters, type=kind)
        model.generate(_TRIAL, seed=0)
    except _UNFIT as error:
        raise InputError(f"{path}: not parameters of the model {content.model}: {error}") from None
    return model


def log_from_recipe(
    recipe: Mapping[str, Any], folder: str | Path = "", progress: Progress | None = None
) -> SwfLog:
    """The log that a recipe describes; its files are relative to ``folder``.

    A recipe has either a ``file``, which may need a ``kind`` and ``input_options``, or a ``model`` with its
    options, ``jobs``, a ``seed`` (0 by default), and ``like`` or ``fitted`` if it learns; ``file`` and
    ``like`` may be logs that are read already. ``changes`` are applied last.
    """
    rest = dict(recipe)
    changes = rest.pop("changes", [])
    if not (isinstance(changes, list) and all(isinstance(change, str) for change in changes)):
        raise InputError(f'changes must be a list of texts like "load factor=1.2", not {changes!r}')
    if ("file" in rest) == ("model" in rest):
        raise InputError(f"a log needs either a file or a model, not {', '.join(recipe) or 'nothing'}")
    log = _read(rest, Path(folder)) if "file" in rest else _generated(rest, Path(folder), progress)
    return change_log(log, changes)


def _read(recipe: dict[str, Any], folder: Path) -> SwfLog:
    file, kind = recipe.pop("file"), recipe.pop("kind", None)
    options = pairs_in(recipe.pop("input_options", ()), "input_options:")
    if isinstance(file, SwfLog):
        return file
    if recipe:
        raise InputError(
            f"{file}: a file has no option {next(iter(recipe))!r}; it knows kind, input_options and changes"
        )
    return read_log(folder / file, kind, options)


def _generated(recipe: dict[str, Any], folder: Path, progress: Progress | None) -> SwfLog:
    name, seed = recipe.pop("model"), recipe.pop("seed", 0)
    jobs = recipe.pop("jobs", None)
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"model {name!r}: say how many jobs it shall generate, as in jobs = 10000")
    like, fitted = recipe.pop("like", None), recipe.pop("fitted", None)
    with naming(f"model {name!r}"):
        model = MODELS.create(name, recipe)
        if isinstance(model, LearningModel):
            if (like is None) == (fitted is None):
                raise InputError(
                    f"model {name!r} learns from a log: give either like = LOG or fitted = FILE; "
                    "on the command line, give --like LOG or --model FILE"
                )
            if fitted is None:
                log = like if isinstance(like, SwfLog) else read_log(folder / str(like))
                model = model.fit(log, progress)
            elif (model := load_model(folder / fitted, recipe)).name != name:
                raise InputError(f"{fitted}: this is a model {model.name}, not {name}")
        elif like is not None or fitted:
            needless = "fitted" if like is None else "like"
            raise InputError(f"model {name!r} learns from no log; leave out {needless}")
        log = model.generate(jobs, seed)
    if not isinstance(log, SwfLog):
        raise InputError(f"model {name!r} gives back {shown(log)}, and not a log")
    return log
