"""``batsched-py schedulers``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.cli.listings import schedulers_command
from batsched_py.schedulers import SCHEDULERS
from tests.processes import call_here

POLICY = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Annotated, Literal
from msgspec import Meta
from batsched_py.schedulers import Cluster, Scheduler


@dataclass
class Deep(Scheduler):
    """Looks deep into the queue.

    It may take its time.
    """

    name = "deep"
    depth: Annotated[int, Meta(ge=1, description="How many jobs it looks at.")] = 10
    order: Annotated[Literal["fcfs", "sjf"], Meta(description="In which order.")] = "fcfs"

    def schedule(self, cluster: Cluster) -> None:
        pass
'''


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(schedulers_command, arguments)


def test_there_is_a_line_for_each() -> None:
    lines = invoke().stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(SCHEDULERS.all())
    assert any("First come, first served" in line for line in lines)


def test_one_is_described_with_its_docstring() -> None:
    result = invoke("easy")
    assert result.exit_code == 0
    assert "EASY backfilling" in result.stdout


def test_options_are_described_with_type_meaning_and_default(tmp_path: Path) -> None:
    path = tmp_path / "deep_policy.py"
    path.write_text(POLICY)
    own, _, shared = invoke(f"{path}:Deep").stdout.partition("  -o selection=")
    assert own.splitlines() == [
        f"{path}:Deep",
        "",
        "Looks deep into the queue.",
        "",
        "It may take its time.",
        "",
        "Options:",
        "  -o depth=int                    How many jobs it looks at.  [default: 10]",
        "  -o order=fcfs|sjf               In which order.  [default: fcfs]",
    ]
    assert shared.split()[:2] == [
        "lowest|contiguous|best-fit|spread|random|fastest|fewest-switches|least-loaded",
        "Which",
    ]


@pytest.mark.parametrize("kind", ["schedulers", "users", "models", "changes"])
def test_list_has_every_kind(kind: str) -> None:
    code, everything, _ = call_here(["list"])
    _, lines, _ = call_here(["list", kind])
    assert code == 0
    assert lines == call_here([kind])[1]
    assert f"{kind}:\n" + "".join(f"  {line}\n" for line in lines.splitlines()) in everything


def test_list_describes_one() -> None:
    assert call_here(["list", "schedulers", "easy"]) == call_here(["schedulers", "easy"])
