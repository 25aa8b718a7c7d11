"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def modules_with_examples() -> list[str]:
    """The names of the modules with an example in a docstring; only these are imported for it."""
    files = sorted(file for file in (ROOT / "batsched_py").rglob("*.py") if ">>> " in file.read_text())
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


@pytest.mark.parametrize("module", modules_with_examples())
def test_the_examples_of_a_module_are_true(module: str) -> None:
    failed, tried = doctest.testmod(import_module(module.removesuffix(".__init__")))
    assert (failed, tried > 0) == (0, True)
