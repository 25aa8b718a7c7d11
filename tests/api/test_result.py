"""What a simulation gives back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.analysis.plots.figures import KINDS, RunsKind
from batsched_py.analysis.plots.style import Look
from batsched_py.api.result import Metrics
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.schedulers.capped import Capped
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.power import PowerAccount
from tests.processes import call_here

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(SAMPLE).first(400)


@pytest.fixture(scope="module")
def rigid(log: bp.Log) -> bp.Result:
    return bp.simulate(log, "easy", hosts=32)


@pytest.fixture(scope="module")
def feedback(log: bp.Log) -> bp.Result:
    return bp.simulate(log, "easy", hosts=32, users="think-time")


def test_jobs_know_their_users_and_when_they_were_recorded(
    rigid: bp.Result, feedback: bp.Result, log: bp.Log
) -> None:
    recorded = log.jobs
    for result in (rigid, feedback):
        jobs = result.jobs.set_index("job_id").loc[recorded.index]
        assert (jobs.user == recorded.user.astype(str)).all()
        assert np.allclose(jobs.recorded, recorded.submit - recorded.submit.min())
        assert np.allclose(jobs.lateness, jobs.submission_time - jobs.recorded)
    assert (rigid.jobs.lateness == 0).all()
    assert feedback.jobs.lateness.max() > 0


@pytest.mark.parametrize("which", ["rigid", "feedback"])
def test_metrics_are_those_of_the_command(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    result: bp.Result = request.getfixturevalue(which)
    result.save(tmp_path / "out")
    told = CliRunner().invoke(
        batsched_py, ["metrics", str(tmp_path / "out_jobs.csv"), "--hosts", "32", "--json"]
    )
    assert json.loads(told.stdout)["metrics"] == result.metrics


def test_validate_finds_what_is_wrong(rigid: bp.Result) -> None:
    assert rigid.validate() == rigid.validate("easy") == []
    assert {violation.rule for violation in rigid.validate("fcfs")} == {"fcfs-order"}


def test_what_was_not_traced_says_how_to_trace_it(rigid: bp.Result) -> None:
    with pytest.raises(InputError, match="enable_machine_state_tracing=True"):
        rigid.machine_states  # noqa: B018
    with pytest.raises(InputError, match="energy=True"):
        rigid.energy  # noqa: B018


def test_machine_states_add_up_to_the_machine(log: bp.Log) -> None:
    states = bp.simulate(log, "easy", enable_machine_state_tracing=True).machine_states
    assert (states.drop(columns="time").filter(like="nb_").sum(axis=1) == 64).all()


def test_what_happened_is_a_log(rigid: bp.Result, log: bp.Log, tmp_path: Path) -> None:
    rigid.to_swf(tmp_path / "happened.swf")
    happened = bp.read_log(tmp_path / "happened.swf")
    assert happened.hosts == 32
    before, after = log.jobs, happened.jobs.loc[log.jobs.index]
    for column in ("user", "group", "executable", "queue", "partition"):
        assert (after[column] == before[column]).all(), column
    jobs = rigid.jobs.set_index("job_id").loc[before.index]
    ran = jobs.final_state != "REJECTED"
    assert (after.wait[ran] == jobs.waiting_time[ran]).all()
    assert (after.run_time[ran] == before.run_time[ran]).all()
    assert (after.status == np.where(ran, 1, 5)).all()
    assert (after.allocated_processors[~ran] == 0).all()


def test_a_log_of_what_happened_begins_when_the_recorded_one_did(log: bp.Log) -> None:
    later = log.period(start="7d")
    start = float(later.header["UnixStartTime"]) + later.columns.submit.min()
    happened = bp.simulate(later, "fcfs").log
    assert float(happened.header["UnixStartTime"]) == pytest.approx(start, abs=0.5)
    assert happened.columns.submit[0] == 0


def test_what_happened_can_be_simulated_again(rigid: bp.Result) -> None:
    again = bp.simulate(rigid.log.sizes(most=32), "easy")
    assert (again.jobs.waiting_time == rigid.jobs.waiting_time[rigid.jobs.success == 1].to_numpy()).all()


RUNS_KINDS = sorted(name for name, kind in KINDS.all().items() if issubclass(kind, RunsKind))


@pytest.mark.parametrize("kind", RUNS_KINDS)
def test_every_figure_of_runs_is_a_method(
    kind: str, rigid: bp.Result, log: bp.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the runs, the recorded log and the options that its command gives it."""
    drawn: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        KINDS.find(kind),
        "draw",
        lambda self, sheet, runs, recorded: drawn.append((sheet.look, runs, recorded)),
    )
    getattr(rigid.plot, kind.replace("-", "_"))(recorded=log, width="column")
    ((look, (run,), recorded),) = drawn
    assert look == Look(width="column")
    assert (run.label, run.hosts, run.log) == ("easy", 32, log.columns)
    assert recorded.hosts == 64


def test_power_is_drawn_where_energy_is_accounted_for(log: bp.Log, root: Path) -> None:
    result = bp.simulate(log, "easy", platform=root / "platforms" / "power64.xml", energy=True)
    drawn = result.plot.power(width="column")
    edges = drawn.axes[0].patches[0].get_data()
    hours = np.diff(edges.edges) * 24
    assert edges.values @ hours == pytest.approx(result.overview.consumed_joules / 3.6e6, rel=1e-3)
    assert drawn.get_size_inches()[0] == 3.5


def test_a_figure_is_the_one_of_the_command(feedback: bp.Result, tmp_path: Path) -> None:
    feedback.save(tmp_path / "think-time")
    feedback.plot.gantt(colour="user").save(tmp_path / "ours.svg")
    jobs = f"{feedback.label}={tmp_path}/think-time_jobs.csv"
    target = str(tmp_path / "theirs.svg")
    drawn = CliRunner().invoke(batsched_py, ["plot", "gantt", jobs, "--colour", "user", "--output", target])
    assert drawn.exit_code == 0, drawn.stderr
    assert (tmp_path / "ours.svg").read_bytes() == (tmp_path / "theirs.svg").read_bytes()


def test_figures_are_offered_by_name(rigid: bp.Result) -> None:
    assert {"gantt", "cumulative", "lateness", "additional_lateness"} <= set(dir(rigid.plot))
    with pytest.raises(AttributeError, match="there is no figure 'pie'; known are "):
        rigid.plot.pie  # noqa: B018


def test_results_that_are_compared_need_labels_of_their_own(rigid: bp.Result, log: bp.Log) -> None:
    other = bp.simulate(log, "easy", hosts=64)
    with pytest.raises(InputError, match=r"the label 'easy' is taken; give one of the results another"):
        rigid.plot.cumulative(other)
    other.label = "whole machine"
    assert rigid.plot.cumulative(other)._repr_png_()


def test_it_shows_what_run_prints(rigid: bp.Result) -> None:
    assert "mean wait" in repr(rigid)
    assert "<th>hosts</th><td>32</td>" in rigid._repr_html_()


def test_files_that_were_exported_are_there_already(log: bp.Log, tmp_path: Path) -> None:
    result = bp.simulate(log, "easy", export=tmp_path / "out")
    with pytest.raises(InputError, match="are written already"):
        result.save(tmp_path / "other")


@pytest.mark.parametrize("scheduler", ["easy", "capped(easy)"])
def test_python_finds_the_violations_that_the_command_finds(scheduler: str, tmp_path: Path) -> None:
    """EASY takes no notice of the cap."""
    power60 = Path(__file__).parents[1] / "data" / "golden" / "power60_sleeper"
    cap, closures = tmp_path / "cap.csv", tmp_path / "closures.csv"
    cap.write_text("time,value\n0,1300\n2000,1100\n4000,1500\n")
    closures.write_text("start,end,hosts\n3000,4000,0-3\n")
    workload, platform = str(power60 / "power60.json"), str(power60 / "power8.xml")
    outside = {"power_cap": str(cap), "closures": str(closures)}
    prefix = f"{tmp_path}/out"
    result = bp.simulate(workload, scheduler, platform=platform, energy=True, export=prefix, **outside)
    found = Counter(violation.rule for violation in result.validate())
    assert ("power" in found) == (scheduler == "easy")
    given = ["-w", workload, "-p", platform, "--power-cap", str(cap), "--closures", str(closures)]
    code, said, _ = call_here(["validate", f"{prefix}_jobs.csv", *given])
    assert code == bool(found)
    counts = ", ".join(f"{rule}: {count}" for rule, count in sorted(found.items()))
    assert said.splitlines()[-1] == (counts or f"{prefix}_jobs.csv: 60 jobs, no violation")


@pytest.mark.parametrize("given", ["watts", "capped.watts", "object"])
def test_a_cap_that_is_an_option_is_checked_too(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that takes no notice of its own cap is found out, as by the command that is told the cap."""
    power60 = Path(__file__).parents[1] / "data" / "golden" / "power60_sleeper"
    workload, platform = str(power60 / "power60.json"), str(power60 / "power8.xml")

    def violations() -> Counter[str]:
        if given == "object":
            policy = Capped(watts=1300)
            policy.inner = Easy()  # type: ignore[misc]
            result = bp.simulate(workload, policy, platform=platform)
        else:
            result = bp.simulate(workload, "cooled(capped(easy))", platform=platform, options={given: 1300})
        return Counter(violation.rule for violation in result.validate())

    assert violations() == {}
    monkeypatch.setattr(PowerAccount, "allows", lambda *_: True)
    assert violations() == {"power": 30}


def test_of_a_cap_over_time_and_one_that_is_an_option_the_lower_one_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    power60 = Path(__file__).parents[1] / "data" / "golden" / "power60_sleeper"
    workload, platform = str(power60 / "power60.json"), str(power60 / "power8.xml")
    monkeypatch.setattr(PowerAccount, "allows", lambda *_: True)
    found = []
    for number, (watts, lowest) in enumerate([(1300, 1100), (1100, 1300)]):
        cap = tmp_path / f"cap{number}.csv"
        cap.write_text(f"time,value\n0,{lowest}\n")
        outside = {"power_cap": str(cap), "options": {"watts": watts}, "export": tmp_path / f"out{number}"}
        result = bp.simulate(workload, "capped(easy)", platform=platform, **outside)
        found.append(len(result.validate()))
    given = ["-w", workload, "-p", platform, "--power-cap", "1100"]
    code, said, _ = call_here(["validate", str(tmp_path / "out0_jobs.csv"), *given])
    assert (code, said.splitlines()[-1]) == (1, f"power: {found[0]}")
    assert found[0] == found[1]


def test_a_metric_that_is_none_is_told_with_those_that_there_are() -> None:
    metrics = Metrics({"mean_waiting_time": 1.0, "makespan": 2.0})
    assert metrics["makespan"] == 2.0
    assert metrics.get("mean_wait") is None
    told = r"there is no metric 'mean_wait' \(did you mean 'mean_waiting_time'\?\); there are makespan, "
    for kind in (KeyError, InputError):
        with pytest.raises(kind, match=told):
            metrics["mean_wait"]


def test_a_notebook_shows_a_mistake_in_one_line() -> None:
    """IPython asks the error how it looks."""
    assert InputError("there is no scheduler 'eazy'")._render_traceback_() == [
        "InputError: there is no scheduler 'eazy'"
    ]


def test_what_is_public_has_a_short_repr(log: bp.Log, rigid: bp.Result) -> None:
    shown = map(repr, (rigid.plot, rigid.outcome, rigid.workloads[0], log.describe()))
    assert [len(each) < 400 and each.startswith("<") for each in shown] == [True] * 4
