"""Which engine simulates here, and its compiled code: both are part of a run's identity."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal

import batsched_py
from batsched_py import core


def engine() -> Literal["native", "python"]:
    """The engine that is in use in this process."""
    return "native" if core.compiled else "python"


def engine_files() -> list[Path]:
    """What the native engine is made of, if it is in use; the sources of the Python engine are imported."""
    if engine() == "python":
        return []
    extension = import_module("batsched_py._native").__file__
    assert extension is not None
    return [Path(extension), *sorted(Path(batsched_py.__file__).parent.glob(f"*/{core.TWINS}.py"))]
