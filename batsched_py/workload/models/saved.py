"""Fitted models as files: to be shared and used again."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.trust import distrusting
from batsched_py.workload.models import MODELS, LearningModel

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
    try:
        Path(path).write_bytes(content + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


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
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not parameters of the model {content.model}: {error}") from None
    return model
