"""All that the fuzzer ever found: nothing of it breaks anything any more."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.fuzz import CORPUS, TARGETS, fault, mutate, seeds


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_was_found_once_is_harmless(path: Path) -> None:
    assert fault(path.name.partition("-")[0], path.read_bytes()) is None


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_mutations_of_good_inputs_are_harmless(target: str) -> None:
    random = Random(11)
    inputs = seeds(target)
    for content in [*inputs, *(mutate(random, random.choice(inputs)) for _ in range(30))]:
        assert fault(target, content) is None, content


def test_the_fuzzer_finds_what_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(content: bytes, folder: Path) -> None:
        if b"7" in content:
            raise KeyError

    monkeypatch.setitem(TARGETS, "log", fails)
    assert str(fault("log", b"1 7 3")).startswith("KeyError in test_corpus.py:")
