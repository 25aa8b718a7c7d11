"""Which core is in use: the compiled one, or the Python classes that are its specification.

What every job passes exists twice: as Python classes, and compiled, in :mod:`batsched_py._native`, which is
built where a compiler is. Each room that has compiled classes keeps them in its module ``compiled``, under
the names of the Python classes they derive from; so are compiled functions. Both do the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Part = TypeVar("Part", bound=Callable[..., Any])

#: The module of a room that has compiled classes; it cannot be imported where they were not built.
TWINS = "compiled"

#: The variable of the environment that chooses the Python classes where it is neither empty nor 0.
PURE = "BATSCHED_PY_PURE"


def _is_built() -> bool:
    try:
        import_module("batsched_py._native")
    except ImportError:
        return False
    return True


compiled = os.environ.get(PURE, "0") in ("", "0") and _is_built()
"""Whether the compiled core is in use."""


def describe() -> str:
    """Which core is in use, in two words."""
    return "compiled core" if compiled else "pure Python"


def fastest(plain: Part) -> Part:
    """The compiled twin of a Python class or function if the compiled core is in use, else itself."""
    if not compiled:
        return plain
    room = plain.__module__.rpartition(".")[0]
    found: Part = getattr(import_module(f"{room}.{TWINS}"), plain.__name__)
    return found
