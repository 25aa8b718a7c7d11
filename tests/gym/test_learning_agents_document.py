"""The page on learning agents: its Python runs, one piece after another, as a reader would try it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from batsched_py.gym import REWARDS
from batsched_py.gym.tasks import PerJob
from tests.gym.agents import play


def test_its_python_runs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    page = (root / "docs" / "learning-agents.md").read_text()
    pieces = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for piece in pieces:
        exec(piece, names)
    assert len(pieces) == 6
    env = names["env"].unwrapped  # type: ignore[attr-defined]
    agent = names["Agent"]()  # type: ignore[operator]
    assert play(env, agent.act)[0] != 0  # with users, rewarded for their lateness
    assert isinstance(names["squared_wait"], PerJob)


def test_it_names_all_rewards_and_environments(root: Path) -> None:
    page = (root / "docs" / "learning-agents.md").read_text()
    named = set(re.findall(r'`(?:reward=)?"([\w-]+)"`', page))
    assert named == REWARDS.keys()
    assert {f"`batsched_py/{name}-v0`" in page for name in ("PickJob", "Backfill", "ChoosePolicy")} == {True}
