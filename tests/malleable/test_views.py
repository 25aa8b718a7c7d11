"""Validator, metrics, figures, explanations and other views of jobs that grow and shrink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.analysis.plots.kinds.gantt import rectangles
from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Facts, validate
from batsched_py.errors import InputError
from batsched_py.ledger.running import ResizedJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.setup import Setup
from batsched_py.watch.telling import decision
from batsched_py.workload.read import read_workload
from tests.drive import GIGA, computing, platform, workload
from tests.power import machine, run
from tests.processes import call_here

#: On 8 hosts, malleable-easy lets job a grow to 8 at once, shrink to 4 when b comes at 10 and to 2 when c
#: comes at 20, and then a and c grow into what b leaves at 30.
JOBS: list[dict[str, Any]] = [
    {"id": "a", "res": 4, "walltime": 1000, "profile": "p", "malleable": {"min": 1, "max": 8}},
    {"id": "b", "subtime": 10, "res": 4, "walltime": 100, "profile": "q"},
    {"id": "c", "subtime": 20, "res": 2, "walltime": 90, "profile": "p", "malleable": {"min": 1, "max": 4}},
]
PROFILES = {"p": computing(100 * GIGA), "q": {"type": "delay", "delay": 20}}

RESIZES = """job_id,time,hosts_before,hosts_after
w0!a,0.000000,0-3,0-7
w0!a,10.000000,0-7,0-3
w0!a,20.000000,0-3,0-1
w0!a,30.000000,0-1,0-1 4-5
w0!c,30.000000,2-3,2-3 6-7
w0!a,75.000000,0-1 4-5,0-7
"""


def written(folder: Path) -> Path:
    file = folder / "w.json"
    file.write_text(
        json.dumps({"nb_res": 8, "jobs": [{"subtime": 0} | job for job in JOBS], "profiles": PROFILES})
    )
    return file


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of a simulation."""
    folder = tmp_path_factory.mktemp("made")
    command = ["run", "-w", written(folder), "-s", "malleable-easy", "--hosts", "8", "-e", folder / "out"]
    assert call_here(command)[0] == 0
    return folder


def test_the_files_tell_each_change(made: Path) -> None:
    assert (made / "out_resizes.csv").read_text() == RESIZES
    schedule = read_schedule(made / "out_jobs.csv").set_index("job_id")
    assert schedule["allocated_resources"].to_dict() == {"a": "0-7", "b": "4-7", "c": "2-3 6-7"}
    # a has done 80 + 40 + 20 host seconds when it gets 4 hosts for 45 s; 80 of 400 are left for 8 hosts.
    assert schedule["finish_time"].to_dict() == {"a": 85, "b": 30, "c": 75}


def test_without_malleable_jobs_there_is_no_such_file(tmp_path: Path) -> None:
    rigid = [{name: value for name, value in job.items() if name != "malleable"} for job in JOBS]
    jobs = workload(*rigid, profiles=PROFILES)
    for name in ("easy", "malleable-easy"):
        (tmp_path / name).mkdir()
        run(Setup(platform(8), [jobs]), name, tmp_path / name)
    assert {file.name: file.read_bytes() for file in (tmp_path / "easy").iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "malleable-easy").iterdir()
    }
    assert not (tmp_path / "easy" / "out_resizes.csv").exists()


def test_the_resizes_of_an_earlier_simulation_are_removed(own: Path) -> None:
    run(Setup(platform(8), [workload({"id": "a", "res": 4, "walltime": 50})]), "easy", own)
    assert not (own / "out_resizes.csv").exists()
    assert "resizes" not in read_schedule(own / "out_jobs.csv")


def test_metrics_count_host_seconds_piece_by_piece(made: Path) -> None:
    result = bp.simulate(made / "w.json", "malleable-easy", hosts=8)
    assert result.metrics["utilization"] == pytest.approx((400 + 80 + 200) / (8 * 85))
    assert result.validate() == []
    assert result.resizes["time"].to_list() == [0, 10, 20, 30, 30, 75]
    assert result.log.columns.processors.tolist() == [round(400 / 85), 4, round(200 / 55)]
    with pytest.raises(InputError, match="what easy promises is about jobs that keep their hosts"):
        result.validate("easy")


def test_a_gantt_chart_has_pieces_of_different_height(made: Path) -> None:
    shown = read_run(made / "out_jobs.csv", "run")
    areas = rectangles(shown).groupby("job")
    boxes = {
        shown.jobs.at[job, "job_id"]: part[["begin", "end", "low", "high"]].to_numpy().tolist()
        for job, part in areas
    }
    assert boxes == {
        "a": [
            [0, 10, 0, 8],
            [10, 20, 0, 4],
            [20, 30, 0, 2],
            [30, 75, 0, 2],
            [30, 75, 4, 6],
            [75, 85, 0, 8],
        ],
        "b": [[10, 30, 4, 8]],
        "c": [[20, 30, 2, 4], [30, 75, 2, 4], [30, 75, 6, 8]],
    }
    assert shown.busy_hosts(pd.Series([0.0, 40.0, 85.0]).to_numpy()).tolist() == [8, 8]


@pytest.mark.slow
def test_a_gantt_chart_can_be_drawn(made: Path) -> None:
    assert call_here(["plot", "gantt", made / "out_jobs.csv", "--output", made / "gantt.svg"])[0] == 0
    assert (made / "gantt.svg").stat().st_size > 1000


def test_explain_tells_when_a_job_grew_and_who_held_hosts_until_when(made: Path, tmp_path: Path) -> None:
    told = call_here(["explain", made / "out", "a"])[1]
    assert "started at once on 0-7" in told
    assert "resized    grew from 4 to 8 hosts (0-7) at 75" in told
    assert "shrank from 8 to 4 hosts (0-3) at 10" in told
    # On 4 hosts, b has to wait until a, which cannot become smaller than 2, has ended.
    jobs = [JOBS[0] | {"malleable": {"min": 2, "max": 4}}, JOBS[1] | {"res": 3}]
    run(Setup(platform(4), [workload(*jobs, profiles=PROFILES)]), "malleable-easy", tmp_path)
    told = call_here(["explain", tmp_path / "out", "b"])[1]
    assert "held       3 hosts by w0!a, from 10 s before until 1.50 min" in told


def test_the_live_view_names_them() -> None:
    (job,) = workload(JOBS[0], profiles=PROFILES).jobs
    few, many = HostSet.parse("0-1"), HostSet.parse("0-3")
    assert decision(ResizedJob(job, few, many, 5.0)) == "let w0!a go on with 0-3 in place of 0-1"


def test_energy_is_that_of_the_hosts_that_a_job_has(tmp_path: Path) -> None:
    jobs = workload(*JOBS, profiles=PROFILES)
    run(Setup(machine(8), [jobs], energy=True), "malleable-easy", tmp_path)
    schedule = read_schedule(tmp_path / "out_jobs.csv").set_index("job_id")
    # A host draws 200 W when it computes and 100 W when a job sleeps on it.
    assert schedule["consumed_energy"].to_dict() == pytest.approx({"a": 80000, "b": 8000, "c": 40000})
    summary = pd.read_csv(tmp_path / "out_schedule.csv")
    assert summary["consumed_joules"].iloc[0] == pytest.approx(128000)
    assert summary["time_computing"].iloc[0] == pytest.approx(680)


def test_a_job_that_is_too_small_for_too_long_reaches_its_walltime(tmp_path: Path) -> None:
    """The walltime counts from the start, whatever sizes a job had."""
    late = [JOBS[0] | {"walltime": 110}, *(job | {"subtime": 0, "res": 7} for job in JOBS[1:2])]
    profiles = PROFILES | {"q": {"type": "delay", "delay": 90}}
    jobs = workload(*late, profiles=profiles)
    run(Setup(platform(8), [jobs]), "malleable-easy", tmp_path)
    schedule = read_schedule(tmp_path / "out_jobs.csv").set_index("job_id")
    # 90 host seconds until 90, then 8 in a second: 310 are left and would take until 128.75.
    assert schedule.at["a", "final_state"] == "COMPLETED_WALLTIME_REACHED"
    assert schedule.at["a", "finish_time"] == 110


# --- the validator -----------------------------------------------------------------------------------


def planted(own: Path, *changes: tuple[str, str]) -> set[str]:
    """The rules that are broken when something in the file of resizes is changed."""
    text = RESIZES
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (own / "out_resizes.csv").write_text(text)
    schedule, described = read_schedule(own / "out_jobs.csv"), read_workload(own / "w.json", "w0")
    return {each.rule for each in validate(schedule, 8, [described], facts=Facts(speeds=[1e9] * 8))}


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Path:
    """The same files, to be changed."""
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def test_planted_violations_are_found(own: Path) -> None:
    assert planted(own) == set()
    assert planted(own, ("10.000000,0-7,0-3", "12.000000,0-7,0-3")) == {"overlap", "work"}
    assert planted(own, ("0-1 4-5\n", "0-1 4-6\n"), (",0-1 4-5,", ",0-1 4-6,")) == {"overlap", "work"}
    assert planted(own, ("75.000000", "86.000000")) == {"resize", "work"}
    assert planted(own, ("20.000000,0-3,0-1", "20.000000,0-2,0-1")) == {"resize"}
    assert planted(own, ("4-5,0-7", "4-5,0-8")) == {"capacity", "malleable", "resize"}
    assert planted(own, ("4-5,0-7", "4-5,0-6")) == {"resize", "work"}
    assert planted(own, ("w0!c", "w0!b")) == {"malleable", "overlap", "resize", "work"}


def test_a_job_that_leaves_its_bounds_is_found(own: Path) -> None:
    (own / "w.json").write_text((own / "w.json").read_text().replace('"max": 8', '"max": 7'))
    assert planted(own) == {"malleable"}


def test_the_command_knows_the_file(own: Path) -> None:
    command = ["validate", own / "out_jobs.csv", "-w", own / "w.json", "--hosts", "8"]
    assert call_here(command)[0] == 0
    (own / "out_resizes.csv").write_text(RESIZES.replace("75.000000", "74.000000"))
    code, out, _ = call_here(command)
    assert code == 1 and "overlap: 1, work: 1" in out
    (own / "out_resizes.csv").write_text(RESIZES.replace("75.000000", "soon"))
    code, out, err = call_here(command)
    assert (code, out) == (1, "")
    assert "out_resizes.csv:7: this is no line of resizes (job_id,time,hosts_before,hosts_after)" in err
