"""What an experiment says about itself."""

from __future__ import annotations

import msgspec
from hypothesis import given

from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.events import Settings
from tests.experiment.strategies import experiments

OPTIONS = {"x": "mine.py", "signal_file": "s.csv", "no_file": ""}
WITH_FILES = Experiment(
    scenario=Scenario(
        workloads=Workloads(files=("a.swf", "b.json")), machine=Machine(file="p.xml"), events=("e.txt",)
    ),
    actors=Actors(scheduler=Choice("mine.py:Mine"), users=Choice("calm.py:Calm(users.py:Us)", OPTIONS)),
)


@given(experiments)
def test_it_survives_being_written_as_json(experiment: Experiment) -> None:
    assert msgspec.json.decode(msgspec.json.encode(experiment), type=Experiment) == experiment


def test_all_its_files_are_known() -> None:
    files = ["a.swf", "b.json", "p.xml", "e.txt", "mine.py", "calm.py", "users.py", "s.csv"]
    assert WITH_FILES.files == files


def test_all_its_files_can_be_renamed_and_nothing_else() -> None:
    renamed = WITH_FILES.renamed(lambda file: f"/x/{file}")
    assert renamed.files == [f"/x/{file}" for file in WITH_FILES.files]
    options = OPTIONS | {"signal_file": "/x/s.csv"}
    assert renamed.actors.users == Choice("/x/calm.py:Calm(/x/users.py:Us)", options)
    assert renamed.renamed(lambda file: file.removeprefix("/x/")) == WITH_FILES


def test_the_file_of_a_scheduler_of_pybatsim_can_be_renamed() -> None:
    choice = Choice("pybatsim:theirs.py").renamed(lambda file: f"/x/{file}")
    assert choice == Choice("pybatsim:/x/theirs.py")


@given(experiments)
def test_what_is_installed_has_no_file_to_rename(experiment: Experiment) -> None:
    installed = [
        choice
        for choice in (experiment.actors.scheduler, experiment.actors.users)
        if choice is not None and not choice.files
    ]
    assert [choice.renamed(lambda file: "") for choice in installed] == installed


def test_jobs_that_users_submit_are_not_given_to_the_simulator() -> None:
    settings = Settings(compute_sharing=True)
    scenario = Scenario(workloads=Workloads(files=("a.swf",)), settings=settings, energy=True)
    scheduler = Choice("easy")
    static = Experiment(scenario=scenario, actors=Actors(scheduler=scheduler))
    assert static.simulated == scenario
    dynamic = Experiment(scenario=scenario, actors=Actors(scheduler=scheduler, users=Choice("rigid")))
    assert dynamic.simulated == Scenario(
        settings=Settings(compute_sharing=True, dynamic_jobs=True, profile_reuse=True), energy=True
    )


def test_machine_states_are_traced_with_energy_unless_told_otherwise() -> None:
    traced = [
        Scenario(energy=energy, machine_states=states).traces_machine_states
        for states in (None, False, True)
        for energy in (False, True)
    ]
    assert traced == [False, True, False, False, True, True]
