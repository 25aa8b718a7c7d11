from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec import structs

from batsched_py import native
from batsched_py.campaign import files
from batsched_py.campaign.files import digest_of_file, identity
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.run import options_of
from hatch_build import digest_of_sources
from tests.experiment.commands import parsed


@pytest.fixture
def experiment(folder: Path) -> Experiment:
    (folder / "outage.txt").write_text('{"timestamp": 1, "type": "machine_unavailable", "resources": "0"}\n')
    return Experiment(
        scenario=Scenario(
            workloads=Workloads(files=(str(folder / "small.swf"),)),
            machine=Machine(hosts=64),
            events=(str(folder / "outage.txt"),),
        ),
        actors=Actors(scheduler=Choice(f"{folder / 'policies.py'}:Shuffled")),
    )


def test_the_same_run_has_the_same_identity(experiment: Experiment) -> None:
    assert identity(experiment, "built-in") == identity(structs.replace(experiment), "built-in")


def test_where_files_lie_does_not_matter(
    experiment: Experiment, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for file in map(Path, experiment.files):
        (elsewhere / file.name).write_bytes(file.read_bytes())
    moved = experiment.renamed(lambda file: str(elsewhere / Path(file).name))
    assert identity(moved, "built-in") == identity(experiment, "built-in")


@pytest.mark.parametrize(
    "change",
    [
        ["--hosts", "32"],
        ["--speed", "2"],
        ["--walltime", "requested"],
        ["--walltime-factor", "3"],
        ["-w", "small.swf"],
        ["-o", "seed=3"],
        ["-s", "easy"],
        ["--users", "rigid"],
        ["--scheduling-delay", "1"],
        ["--enable-compute-sharing"],
        ["--ignore-communication"],
        ["--energy"],
    ],
    ids=" ".join,
)
def test_every_choice_matters(
    experiment: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch, change: list[str]
) -> None:
    monkeypatch.chdir(folder)
    changed = parsed([*options_of(experiment), *change])
    assert identity(changed, "built-in") != identity(experiment, "built-in")


@pytest.mark.parametrize("name", ["small.swf", "policies.py", "outage.txt"])
def test_the_content_of_every_file_matters(experiment: Experiment, folder: Path, name: str) -> None:
    before = identity(experiment, "built-in")
    with (folder / name).open("a") as file:
        file.write("\n")
    assert identity(experiment, "built-in") != before


def test_the_simulator_matters(experiment: Experiment) -> None:
    assert identity(experiment, "batsim 4.2.0") != identity(experiment, "batsim 4.1.0")


def test_the_library_of_the_native_engine_does_not_matter(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both engines give the same results, however the native one was built."""
    before = identity(experiment, "built-in")
    for library in (None, SimpleNamespace(SOURCES="one"), SimpleNamespace(SOURCES="two")):
        monkeypatch.setattr(native, "library", library)
        assert identity(experiment, "built-in") == before


def test_the_library_tells_of_what_sources_it_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "library", None)
    assert native.sources() == ""
    monkeypatch.undo()
    if native.library is not None:
        assert native.sources() == digest_of_sources(Path(__file__).parents[2] / "native")


SIMULATE = "batsched_py.campaign.results"


def sources(*roots: str) -> set[str]:
    return set(files.reachable_modules(roots))


def test_the_code_of_a_run_is_what_its_modules_reach() -> None:
    reached = sources(SIMULATE)
    assert {
        "batsched_py.engines.python",
        "batsched_py.ledger.ledger",
        "batsched_py.workload.swf.reader",
        "batsched_py.analysis.metrics",
    } <= reached
    assert not {
        name for name in reached if name.startswith(("batsched_py.cli", "batsched_py.schedulers.easy"))
    }


def test_only_the_policy_of_a_run_is_part_of_its_code() -> None:
    assert "batsched_py.schedulers.easy" in sources(
        "batsched_py.campaign.results", "batsched_py.schedulers.easy"
    )
    assert "batsched_py.schedulers.fcfs" not in sources("batsched_py.schedulers.easy")


def test_a_policy_of_ones_own_brings_the_policy_it_builds_on(
    experiment: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    monkeypatch.setattr(files, "_digest_of_modules", lambda roots: asked.append(sources(*roots)) or "")
    (folder / "policies.py").write_text("from batsched_py.schedulers.easy import Easy as Mine\n")
    mine = Actors(scheduler=Choice(f"{folder / 'policies.py'}:Mine"))
    files.digest_of_code(structs.replace(experiment, actors=mine))
    assert "batsched_py.schedulers.easy" in asked[0]


def test_users_inside_of_others_are_part_of_the_code(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    monkeypatch.setattr(files, "_digest_of_modules", lambda roots: asked.append(sources(*roots)) or "")
    users = Choice("resample(patience(adjusted))")
    files.digest_of_code(structs.replace(experiment, actors=Actors(scheduler=Choice("easy"), users=users)))
    assert {f"batsched_py.users.{name}" for name in ("resample", "patience", "batches")} <= asked[0]


def test_a_file_that_an_option_names_matters(experiment: Experiment, tmp_path: Path) -> None:
    identities = set()
    for folder, signal in (("a", "0,1\n"), ("b", "0,1\n"), ("c", "0,2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "signal.csv").write_text(signal)
        users = Choice("sober", {"signal_file": str(tmp_path / folder / "signal.csv")})
        actors = Actors(scheduler=Choice("easy"), users=users)
        identities.add(identity(structs.replace(experiment, actors=actors), "built-in"))
    assert len(identities) == 2


def test_the_file_and_the_version_of_a_scheduler_of_pybatsim_matter(
    experiment: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Actors(scheduler=Choice(f"pybatsim:{folder / 'policies.py'}"))
    experiment = structs.replace(experiment, actors=theirs)
    monkeypatch.setattr(files, "pybatsim_version", lambda: "3.2.1")
    identities = {identity(experiment, "built-in")}
    monkeypatch.setattr(files, "pybatsim_version", lambda: "3.2.2")
    identities.add(identity(experiment, "built-in"))
    (folder / "policies.py").write_text("")
    identities.add(identity(experiment, "built-in"))
    assert len(identities) == 3


def test_another_module_of_the_same_name_does_not_matter(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity(experiment, "built-in")
    monkeypatch.setitem(sys.modules, "policies", ast)
    assert identity(experiment, "built-in") == before


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: cannot be read: No such file or directory"):
        digest_of_file(tmp_path / "nowhere")


def test_code_is_all_that_a_module_builds_on_but_what_only_its_types_need() -> None:
    found = files.reachable_modules(["batsched_py.schedulers.use"])
    assert found["batsched_py.ledger.running"].name == "running.py"
    assert "batsched_py.protocol.jobs" in found, "which is imported by what is imported"
    assert "batsched_py.schedulers.cluster" not in found
