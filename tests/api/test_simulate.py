"""``bp.simulate``: the words of the command line, the bytes of the command line, and no files."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

import batsched_py as bp
from batsched_py.api.simulating import simulate_experiment
from batsched_py.cli.run import run_command
from batsched_py.errors import InputError
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.users.patience import Patience
from batsched_py.users.rigid import Rigid
from batsched_py.users.think_time import ThinkTime
from tests.experiment.commands import parsed

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "workloads" / "sample.swf"
POWER = ROOT / "platforms" / "power64.xml"

#: What the command line calls otherwise: several KEY=VALUE there are one mapping here.
OTHERWISE = {"option": "options", "user_option": "user_options"}

#: What is for commands only.
COMMANDS_ONLY = {
    "json",
    "help",
    "step",
    "live",
    "status",
    "control",
    "no_control",
    "review",
    "sched_cfg_file",
    "disable_machine_state_tracing",
    "disable_schedule_tracing",
    "external_events",
}


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(SAMPLE).first(400)


def test_the_words_are_those_of_run() -> None:
    longest = {
        option.removeprefix("--").replace("-", "_")
        for parameter in run_command.get_params(click.Context(run_command))
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    words = {OTHERWISE.get(word, word) for word in longest - COMMANDS_ONLY}
    assert inspect.signature(bp.simulate).parameters.keys() == words | {"progress"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-s easy", {"scheduler": "easy"}),
        ("-s easy --hosts 40 --speed 2", {"scheduler": "easy", "hosts": 40, "speed": 2.0}),
        (
            "-s fcfs --hosts 32 --users think-time --sessions arrival:60 --scheduling-delay 2",
            {
                "scheduler": "fcfs",
                "hosts": 32,
                "users": "think-time",
                "sessions": "arrival:60",
                "scheduling_delay": 2.0,
            },
        ),
        (
            f"-s sleeper -o idle_time=600 -p {POWER} -E",
            {"scheduler": "sleeper", "options": {"idle_time": 600}, "platform": POWER, "energy": True},
        ),
        (
            "-s conservative --walltime max --walltime-factor 3 --enable-machine-state-tracing --mmax 48",
            {
                "scheduler": "conservative",
                "walltime": "max",
                "walltime_factor": 3.0,
                "enable_machine_state_tracing": True,
                "mmax": 48,
            },
        ),
    ],
)
def test_the_files_are_those_of_run(options: str, words: dict[str, Any], log: bp.Log, tmp_path: Path) -> None:
    """Of a log in memory, of its file, and kept in memory or not."""
    file = tmp_path / "log.swf"
    log.save(file)
    theirs = simulate_experiment(parsed(["-w", str(file), *options.split()]), export=str(tmp_path / "theirs"))
    names = [Path(name).name.removeprefix("theirs_") for name in theirs.overview.files]
    for number, workload in enumerate((log, file)):
        bp.simulate(workload, **words, progress=False).save(tmp_path / f"ours{number}")
        for name in names:
            ours = (tmp_path / f"ours{number}_{name}").read_bytes()
            assert ours == (tmp_path / f"theirs_{name}").read_bytes(), name
    exported = bp.simulate(log, **words, export=tmp_path / "exported")
    assert exported.jobs.equals(bp.simulate(log, **words).jobs)
    assert (tmp_path / "exported_jobs.csv").read_bytes() == (tmp_path / "theirs_jobs.csv").read_bytes()


def test_nothing_is_written_unless_asked_for(
    log: bp.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = bp.simulate(log, "easy", platform=POWER, energy=True)
    assert len(result.jobs) == len(result.log) == 400
    assert result.metrics["consumed_joules"] == pytest.approx(result.energy["energy"].iloc[-1], rel=1e-6)
    assert not result.machine_states.empty
    result.plot.gantt()._repr_png_()
    assert list(tmp_path.iterdir()) == []


@dataclass
class WidestFirst(bp.Scheduler):
    """The widest waiting job goes next, those of one size in the order of their names."""

    name = "widest-first"
    skips: bool = False

    def schedule(self, cluster: bp.Cluster) -> None:
        for job in sorted(cluster.queue, key=lambda job: (-job.size, job.id)):
            if cluster.fits(job):
                cluster.start(job)
            elif not self.skips:
                break


@pytest.mark.parametrize("scheduler", ["easy", Easy, Easy()])
def test_a_scheduler_is_a_name_a_class_or_an_object(scheduler: Any, log: bp.Log) -> None:
    result = bp.simulate(log, scheduler, hosts=64)
    assert result.overview.scheduler == "easy"
    assert result.jobs.equals(bp.simulate(log, "easy", hosts=64).jobs)


def test_a_class_of_ones_own_takes_options(log: bp.Log) -> None:
    patient = bp.simulate(log, WidestFirst, options={"skips": True})
    assert patient.jobs.equals(bp.simulate(log, WidestFirst(skips=True)).jobs)
    assert patient.jobs.starting_time.sum() < bp.simulate(log, WidestFirst).jobs.starting_time.sum()


@pytest.mark.parametrize("users", ["think-time", ThinkTime, ThinkTime()])
def test_users_are_a_name_a_class_or_an_object(users: Any, log: bp.Log) -> None:
    result = bp.simulate(log, "easy", hosts=32, users=users)
    assert result.overview.users == "think-time"
    assert result.jobs.equals(bp.simulate(log, "easy", hosts=32, users="think-time").jobs)


def test_a_behaviour_around_another_is_a_class_too(log: bp.Log) -> None:
    result = bp.simulate(log, "easy", hosts=32, users=Patience, user_options={"seed": 3})
    same = bp.simulate(log, "easy", hosts=32, users="patience", user_options={"seed": "3"})
    assert result.jobs.equals(same.jobs)


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize(
    ("users", "by", "warns"),
    [("think-time", "arrivals", True), ("rigid", "arrivals", False), ("think-time", "run-times", False)],
)
def test_users_of_a_log_whose_arrivals_were_scaled_are_told_of(
    users: str,
    by: str,
    warns: bool,
    is_file: bool,
    log: bp.Log,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scaled = log.load(1.2, by=by)
    scaled.save(tmp_path / "k12.swf")
    workload = tmp_path / "k12.swf" if is_file else scaled
    found = bp.simulate(workload, "easy", users=users, progress=False).review()
    assert ("times between arrivals were scaled (load factor=1.2)" in caplog.text) == warns
    assert any("which makes other users" in check.found for check in found) == warns


def test_several_workloads_are_played_together(log: bp.Log) -> None:
    result = bp.simulate([log, SAMPLE], "easy", hosts=64)
    assert len(result.jobs) == 3400
    assert set(result.jobs.workload_name) == {"w0", "w1"}
    assert result.jobs.user.notna().all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"scheduler": "best"}, "there is no scheduler 'best'"),
        ({"scheduler": Rigid}, "neither the name of a scheduler nor a Scheduler"),
        ({"scheduler": 7}, "7 is neither the name of a scheduler nor a Scheduler"),
        ({"scheduler": Fcfs(), "options": {"depth": 1}}, "is made already, so it takes no options"),
        ({"scheduler": Fcfs, "options": {"depth": 1}}, "has no option 'depth'"),
        ({"scheduler": WidestFirst, "options": {"skips": "perhaps"}}, "Expected `bool`"),
        ({"scheduler": "easy", "sessions": "arrival:60"}, "options for users, but no users"),
        (
            {
                "scheduler": "easy",
                "users": "think-time",
                "sessions": "arrival:1",
                "user_options": {"sessions": "arrival:2"},
            },
            "sessions are given twice",
        ),
        ({"scheduler": "easy", "hosts": 4, "platform": POWER}, "give one of them"),
        ({"scheduler": "easy", "host": 4}, "simulate has no setting 'host'; did you mean hosts"),
        ({"scheduler": "easy", "compute_sharing": True}, "did you mean enable_compute_sharing?"),
        ({"scheduler": "easy", "zzz": 1}, r"no setting 'zzz'; help\(batsched_py.simulate\) lists all"),
    ],
)
def test_a_mistake_is_one_line(words: dict[str, Any], message: str, log: bp.Log) -> None:
    with pytest.raises(InputError, match=message) as error:
        bp.simulate(log, **words)
    assert "\n" not in str(error.value)


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"none\.swf: there is no such file"):
        bp.simulate("none.swf", "easy")


def test_a_command_loads_no_tables_and_no_figures(tmp_path: Path) -> None:
    script = (
        "import sys; from batsched_py.cli.run import run_command; "
        f"run_command(['-w', {str(SAMPLE)!r}, '-s', 'easy', '-e', {str(tmp_path / 'out')!r}], "
        "standalone_mode=False); "
        "print(*sorted({'pandas', 'matplotlib', 'networkx', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stderr.strip() == ""
