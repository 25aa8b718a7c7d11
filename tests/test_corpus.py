"""All that the fuzzer ever found: nothing of it breaks anything any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.fuzz import finding
from tests.fuzz.finding import CORPUS, fault, save, shrink
from tests.fuzz.mutation import mutate
from tests.fuzz.targets import TARGETS, Target


@pytest.fixture(autouse=True)
def beside_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process has needed already is not the input's fault."""
    monkeypatch.setattr(finding, "MEMORY", finding.memory() + finding.MEMORY)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_was_found_once_is_harmless(path: Path, tmp_path: Path) -> None:
    assert fault(path.name.partition("-")[0], path.read_bytes(), tmp_path) is None


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if not target.is_message])
def test_good_inputs_are_good(target: str, tmp_path: Path) -> None:
    seeds = TARGETS[target].seeds()
    read = [TARGETS[target].feed(content, tmp_path) for content in seeds]
    assert len(read) == len(seeds) > 0


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_mutations_of_good_inputs_are_harmless(target: str, tmp_path: Path) -> None:
    random = Random(11)
    inputs = TARGETS[target].seeds()
    for _ in range(30):
        content = mutate(random, random.choice(inputs))
        assert fault(target, content, tmp_path) is None, content


def planted(monkeypatch: pytest.MonkeyPatch, feed: Callable[[bytes, Path], object]) -> None:
    """A target with a fault."""
    monkeypatch.setitem(TARGETS, "planted", Target(feed, lambda: [b"1 2 3"]))


def test_what_is_not_ours_is_found_shrunk_and_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(content: bytes, folder: Path) -> None:
        if b"7" in content:
            raise KeyError

    planted(monkeypatch, fails)
    wrong = fault("planted", b"1 7 3", tmp_path)
    assert wrong is not None
    assert wrong.startswith("KeyError in test_corpus.py:")
    small = shrink("planted", b"1 7 3", wrong, tmp_path)
    path = save("planted", small, tmp_path / "corpus")
    assert (path.name.partition("-")[0], path.read_bytes()) == ("planted", b"7")


def test_what_takes_long_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def loops(content: bytes, folder: Path) -> None:
        while True:
            pass

    planted(monkeypatch, loops)
    monkeypatch.setattr(finding, "SECONDS", 0.05)
    assert fault("planted", b"", tmp_path) == "takes too long"


def test_what_takes_memory_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    planted(monkeypatch, lambda content, folder: bytes(64 << 20))
    assert fault("planted", b"", tmp_path) is None
    monkeypatch.setattr(finding, "MEMORY", finding.memory() - 1)
    assert fault("planted", b"", tmp_path) == "takes too much memory"


def test_the_documents_tell_how_many_kinds_there_are() -> None:
    text = (CORPUS.parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert f"good inputs of {len(TARGETS)} kinds" in text
