from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from msgspec import structs

from batsched_py.campaign import digest
from batsched_py.campaign.digest import digest_of_file, identity
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment


@pytest.fixture
def experiment(folder: Path) -> Experiment:
    return Experiment(
        workload=str(folder / "small.swf"), hosts=64, scheduler=f"{folder / 'policies.py'}:Shuffled"
    )


def test_the_same_run_has_the_same_identity(experiment: Experiment) -> None:
    assert identity(experiment, "built-in") == identity(structs.replace(experiment), "built-in")


def test_where_files_lie_does_not_matter(
    experiment: Experiment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("small.swf", "policies.py"):
        (elsewhere / name).write_bytes((Path(experiment.workload).parent / name).read_bytes())
    moved = structs.replace(
        experiment, workload=str(elsewhere / "small.swf"), scheduler=f"{elsewhere / 'policies.py'}:Shuffled"
    )
    assert identity(moved, "built-in") == identity(experiment, "built-in")


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": 32},
        {"speed": 2.0},
        {"walltime": "requested"},
        {"walltime_factor": 3.0},
        {"scheduler_options": {"seed": "3"}},
        {"scheduler": "easy"},
        {"users": "rigid"},
    ],
)
def test_every_choice_matters(experiment: Experiment, change: dict[str, object]) -> None:
    changed = structs.replace(experiment, **change)
    assert identity(changed, "built-in") != identity(experiment, "built-in")


@pytest.mark.parametrize("name", ["small.swf", "policies.py"])
def test_the_content_of_every_file_matters(experiment: Experiment, folder: Path, name: str) -> None:
    before = identity(experiment, "built-in")
    with (folder / name).open("a") as file:
        file.write("\n")
    assert identity(experiment, "built-in") != before


def test_the_simulator_matters(experiment: Experiment) -> None:
    assert identity(experiment, "batsim 4.2.0") != identity(experiment, "batsim 4.1.0")


SIMULATE = "batsched_py.campaign.simulate"


def sources(*roots: str) -> set[str]:
    return set(digest.reachable_modules(roots))


def test_the_code_of_a_run_is_what_its_modules_reach() -> None:
    reached = sources(SIMULATE)
    assert {
        "batsched_py.simulator.engine",
        "batsched_py.ledger.ledger",
        "batsched_py.workload.swf",
        "batsched_py.analysis.metrics",
    } <= reached
    assert not {
        name for name in reached if name.startswith(("batsched_py.cli", "batsched_py.schedulers.easy"))
    }


def test_only_the_policy_of_a_run_is_part_of_its_code() -> None:
    assert "batsched_py.schedulers.easy" in sources(
        "batsched_py.campaign.simulate", "batsched_py.schedulers.easy"
    )
    assert "batsched_py.schedulers.fcfs" not in sources("batsched_py.schedulers.easy")


def test_a_policy_of_ones_own_brings_the_policy_it_builds_on(
    experiment: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    monkeypatch.setattr(digest, "_digest_of_modules", lambda roots: asked.append(sources(*roots)) or "")
    (folder / "policies.py").write_text("from batsched_py.schedulers.easy import Easy as Mine\n")
    digest.digest_of_code(structs.replace(experiment, scheduler=f"{folder / 'policies.py'}:Mine"))
    assert "batsched_py.schedulers.easy" in asked[0]


def test_another_module_of_the_same_name_does_not_matter(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity(experiment, "built-in")
    monkeypatch.setitem(sys.modules, "policies", ast)
    assert identity(experiment, "built-in") == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read: No such file or directory"):
        digest_of_file(tmp_path / "nowhere")
