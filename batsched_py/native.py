"""The library of the native engine, ``batsched_py._native``: built if there is a C++ compiler.

Set the variable ``BATSCHED_PY_PURE`` to 1 to do without it.
"""

import os
from importlib import import_module
from types import ModuleType

#: The variable of the environment that turns the native engine off, unless it is empty or 0.
PURE = "BATSCHED_PY_PURE"


def _is_turned_off() -> bool:
    return os.environ.get(PURE, "0") not in ("", "0")


def _load() -> ModuleType | None:
    if _is_turned_off():
        return None
    try:
        return import_module("batsched_py._native")
    except ImportError:
        return None


library = _load()
"""The module, or None where it was not built or is turned off."""


def sources() -> str:
    """The digest of the sources of the library; empty where there is none."""
    return str(getattr(library, "SOURCES", ""))


def describe() -> str:
    """Which engine runs simulations that both can run, and why it is not the native one."""
    if library is not None:
        return "native engine"
    if _is_turned_off():
        return f"Python engine: {PURE} turns the native one off"
    return "Python engine: the native one was not built, which needs a C++ compiler"
