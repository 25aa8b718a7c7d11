"""Simulations of the same scenario with other phases of Slurm's clocks."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from batsched_py.slurm.policy.settings import Configuration, Reservation, read_configuration
from batsched_py.slurm.prepared import Phase, overruns
from batsched_py.slurm.reservations import BEFORE
from batsched_py.slurm.scenario import Sources, read_scenario, write_scenario
from tests.processes import call_here
from tests.slurm.scenario import RECORDED, compared, recordings
from tests.slurm.scenario import read_scenario as imported_scenario

SCRIPTED = Reservation(name="upkeep", start=1770, end=2970, created=-BEFORE, nodes="ALL")


def test_a_seed_draws_the_same_phases_each_time() -> None:
    assert Phase.of(3) == Phase.of(3)
    assert len({Phase.of(seed).options["started"] for seed in range(10)}) == 10
    minutes = {Phase.of(seed).minute for seed in range(500)}
    assert max(minutes) < 24 * 60 < 1.05 * max(minutes)


def test_a_reservation_of_a_script_moves_with_the_start_of_the_controller() -> None:
    configuration = Configuration(reservations=(SCRIPTED,))
    for seed in range(10):
        phase = Phase.of(seed)
        configured = phase.moved(configuration)
        (moved,) = configured.reservations
        assert 0 <= phase.before <= 2 * BEFORE
        assert moved.start - 1800 == pytest.approx(-phase.before, abs=0.5), "in whole seconds"
        assert moved.start - 1800 == moved.created
        assert moved.end - moved.start == 1200
        assert configured.origin % 60 == 0


def test_the_importer_tells_which_reservations_a_script_has_made(tmp_path: Path) -> None:
    scenario = read_scenario(Sources.of_folder(RECORDED / "chains-1"))
    write_scenario(scenario, tmp_path)
    (reservation,) = read_configuration(tmp_path / "slurm.toml").reservations
    assert (reservation.created, reservation.start) == (-BEFORE, 25 * 60 - BEFORE)


def test_what_a_log_tells_stays() -> None:
    configuration = Configuration(start="2026-01-01T00:00:00Z", reservations=(SCRIPTED,))
    assert Phase.of(1).moved(configuration) == configuration


def test_how_much_longer_jobs_run_is_seen_in_each_recording(tmp_path: Path) -> None:
    """The job that was killed does not count, and neither does one that the scenario does not have."""
    (tmp_path / "slurm.conf").write_text("NodeName=n1 CPUs=1\nPartitionName=all Nodes=n1 Default=YES\n")
    (tmp_path / "jobs.csv").write_text("at,run,args\n0,100,-t 9\n0,200,-t 9\n0,300,-t 9\n")
    _, _, workload = imported_scenario(tmp_path)
    times = {"1": (0, 101.9), "2": (110, 310.9), "3": (320, 500), "4": (0, 9)}
    table = pd.DataFrame.from_dict(times, orient="index", columns=["start", "end"])
    later = table.assign(end=table["end"] + 1)
    assert overruns([table, later], workload) == pytest.approx([0.5, 1.5]), "0.9 s longer are expected"


def test_compare_tells_the_range_over_phases(tmp_path: Path) -> None:
    folder = RECORDED / "tasks-1"
    write_scenario(read_scenario(Sources.of_folder(folder)), tmp_path / "twin")
    arguments = ["slurm", "compare", str(folder / "recorded-a.csv"), str(tmp_path / "twin"), "--phases", "2"]
    found = json.loads(call_here([*arguments, "--json"])[1])
    assert (found["recordings"], found["simulations"], found["recordings_apart"]) == (1, 2, None)
    wait, apart = found["wait"], found["starts_apart"]
    assert wait["least"] <= wait["mean"] <= wait["most"]
    assert apart["least"] <= apart["mean"] <= apart["most"] < 3
    assert found["deviation"] == pytest.approx(wait["mean"] / found["recorded_wait"]["mean"] - 1)
    assert "2 simulations" in call_here(arguments)[1]


def test_an_imported_folder_is_simulated_several_times_if_nothing_is_said(tmp_path: Path) -> None:
    folder = RECORDED / "tasks-1"
    write_scenario(read_scenario(Sources.of_folder(folder)), tmp_path / "twin")
    assert (
        "20 simulations" in call_here(["slurm", "compare", folder / "recorded-a.csv", tmp_path / "twin"])[1]
    )


def test_several_recordings_are_compared_with_a_simulation_and_with_each_other() -> None:
    folder = RECORDED / "parts-1"
    files = [str(folder / f"recorded-{name}.csv") for name in "abb"]
    found = json.loads(call_here(["slurm", "compare", *files, "--json"])[1])
    real = recordings(folder)
    apart = compared(real[0], real[1]).start_difference
    assert (found["recordings"], found["simulations"]) == (2, 1)
    assert found["recordings_apart"] == {"mean": apart, "least": apart, "most": apart}
    assert found["starts_apart"]["mean"] == pytest.approx(apart / 2), "the third is the second"


def test_phases_go_with_a_folder(tmp_path: Path) -> None:
    recorded = RECORDED / "tasks-1" / "recorded-a.csv"
    (tmp_path / "empty").mkdir()
    code, _, told = call_here(["slurm", "compare", recorded, tmp_path / "empty", "--phases", "2"])
    assert code != 0
    assert "make it by `batsched-py slurm import`" in told
