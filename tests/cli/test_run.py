"""``batsched-py run``."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from batsched_py.api import terminal
from batsched_py.cli.main import batsched_py
from tests.processes import COMMAND, PATIENCE, PROGRESS, environment

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"
SAMPLE = ROOT / "workloads" / "sample.swf"
FCFS = ["busy400_fcfs", "kinds120_fcfs", "rigid200_fcfs", "uneven100_fcfs"]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, ["run", *map(str, arguments)])


def jobs(prefix: Path) -> dict[str, dict[str, str]]:
    """The rows of ``PREFIX_jobs.csv`` by workload and job."""
    with Path(f"{prefix}_jobs.csv").open(newline="") as file:
        return {f"{row['workload_name']}!{row['job_id']}": row for row in csv.DictReader(file)}


def workload(path: Path, jobs: list[dict[str, object]], profiles: dict[str, object]) -> Path:
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return path


@pytest.mark.parametrize("name", FCFS)
def test_fcfs_is_that_of_batsched(name: str, tmp_path: Path) -> None:
    folder = GOLDEN / name
    (platform,) = folder.glob("*.xml")
    (jobs_file,) = folder.glob("*.json")
    result = invoke("-w", jobs_file, "-p", platform, "-s", "fcfs", "-e", tmp_path / "ours")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "ours_jobs.csv").read_bytes() == (folder / "jobs.csv").read_bytes()


def test_a_log_runs_on_a_machine_of_its_own_size(tmp_path: Path) -> None:
    result = invoke("-w", SAMPLE, "-s", "easy", "-e", tmp_path / "out", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["hosts"] == 64


def test_json_tells_what_schedule_csv_tells(tmp_path: Path) -> None:
    report = json.loads(invoke("-w", SAMPLE, "-s", "easy", "-e", tmp_path / "out", "--json").stdout)
    with (tmp_path / "out_schedule.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert report["files"] == [str(tmp_path / "out_jobs.csv"), str(tmp_path / "out_schedule.csv")]
    assert report["scheduler"] == "easy"
    assert report["jobs"] == int(row["nb_jobs"]) == 3000
    assert report["rejected"] == int(row["nb_jobs_rejected"])
    assert report["killed"] == int(row["nb_jobs_killed"])
    for ours, column in (
        ("makespan", "makespan"),
        ("mean_waiting_time", "mean_waiting_time"),
        ("max_waiting_time", "max_waiting_time"),
        ("mean_slowdown", "mean_slowdown"),
    ):
        assert f"{report[ours]:.6f}" == row[column]
    work = sum(
        float(job["execution_time"]) * int(job["requested_number_of_resources"])
        for job in jobs(tmp_path / "out").values()
    )
    assert report["utilization"] == pytest.approx(work / (64 * report["makespan"]), rel=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        "--hosts 64 --users resample -u weeks=1 -u seed=1",
        "--hosts 64 --users site-level -u nb_users=5 -u days=2",
        "--hosts 64 --users think-time",
        "--hosts 640",
        "--hosts 16 --reject-larger --users resample -u weeks=1",
        "--hosts 64 --failures exponential --mtbf 2600000 --repair-time 7200 --on-failure resubmit",
    ],
)
@pytest.mark.parametrize("pure", [False, True])
def test_one_name_is_one_value_in_summary_and_metrics(
    options: str, pure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if pure:
        monkeypatch.setattr("batsched_py.native.library", None)
    log = tmp_path / "log.swf"
    assert (
        CliRunner().invoke(batsched_py, ["change", str(SAMPLE), str(log), "first", "jobs=900"]).exit_code == 0
    )
    result = invoke("-w", log, "-s", "easy", *options.split(), "-e", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    printed = CliRunner().invoke(batsched_py, ["metrics", str(tmp_path / "out_jobs.csv"), "--json"]).stdout
    measured = json.loads(printed)["metrics"]
    same = [name for name in told if name in measured]
    assert {"makespan", "utilization", "mean_waiting_time", "mean_bounded_slowdown"} <= {*same}
    for name in same:
        assert told[name] == pytest.approx(measured[name], rel=1e-6), name


def test_the_table_is_short_and_names_the_files(tmp_path: Path) -> None:
    result = invoke("-w", SAMPLE, "-s", "easy", "-e", tmp_path / "o")
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert ["jobs", "3,000"] in lines
    assert ["scheduler", "easy"] in lines
    assert [line[0] for line in lines][-1] == "took"
    assert result.stderr == ""


def test_hosts_may_be_faster_than_those_of_the_log(tmp_path: Path) -> None:
    invoke("-w", SAMPLE, "--hosts", 64, "-s", "fcfs", "-e", tmp_path / "one")
    invoke("-w", SAMPLE, "--hosts", 64, "--speed", 2, "-s", "fcfs", "-e", tmp_path / "two")
    slow, fast = jobs(tmp_path / "one"), jobs(tmp_path / "two")
    for name in ("w0!1", "w0!1000", "w0!3000"):
        assert float(fast[name]["execution_time"]) == float(slow[name]["execution_time"]) / 2


def test_walltimes_follow_the_rule(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text(
        "1 0 0 10 1 -1 -1 1 15 -1 1 1 1 1 1 1 -1 -1\n2 0 0 10 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1\n"
        "3 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    )

    def walltimes(*options: str) -> list[float]:
        invoke("-w", log, "--hosts", 2, "-s", "fcfs", "-e", tmp_path / "out", *options)
        return [float(job["requested_time"]) for _, job in sorted(jobs(tmp_path / "out").items())]

    assert walltimes() == [15, 100, 10]
    assert walltimes("--walltime", "max") == [20, 100, 20]
    assert walltimes("--walltime", "max", "--walltime-factor", "12") == [120, 120, 120]
    assert walltimes("--walltime", "requested") == [15, 100, 10]


def test_nobody_is_killed_who_ran_longer_than_requested_unless_one_asks_for_it(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n2 0 0 10 1 -1 -1 1 5 -1 1 1 1 1 1 1 -1 -1\n")

    def report(*options: str) -> dict[str, object]:
        result = invoke("-w", log, "--hosts", 2, "-s", "easy", "-e", tmp_path / "out", "--json", *options)
        return dict(json.loads(result.stdout))

    assert (report()["killed"], report()["walltime"]) == (0, "requested, at least run time")
    asked = report("--walltime", "requested")
    assert (asked["killed"], asked["walltime"]) == (1, "requested")


def test_several_workloads_are_played_together(tmp_path: Path) -> None:
    folder = GOLDEN / "two_workloads"
    result = invoke(
        "-w",
        folder / "small12.json",
        "-w",
        folder / "rigid200.json",
        "-p",
        folder / "flat16.xml",
        "-s",
        "easy",
        "-e",
        tmp_path / "out",
    )
    assert result.exit_code == 0, result.stderr
    assert {name.partition("!")[0] for name in jobs(tmp_path / "out")} == {"w0", "w1"}
    assert len(jobs(tmp_path / "out")) == 212


def test_jobs_that_communicate_are_refused_or_cut_short(tmp_path: Path) -> None:
    path = workload(
        tmp_path / "w.json",
        [{"id": "1", "subtime": 0, "res": 2, "profile": "talks"}],
        {"talks": {"type": "parallel_homogeneous", "cpu": 5e9, "com": 100}},
    )
    result = invoke("-w", path, "--hosts", 4, "-s", "fcfs", "-e", tmp_path / "out")
    assert result.exit_code == 1
    assert "'talks'" in result.stderr and "--ignore-communication" in result.stderr
    result = invoke("-w", path, "--hosts", 4, "-s", "fcfs", "-e", tmp_path / "out", "--ignore-communication")
    assert result.exit_code == 0
    assert jobs(tmp_path / "out")["w0!1"]["execution_time"] == "5.000000"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--hosts", "4", "-p", "x.xml"], "both --hosts and -p say what the machine is; give one of them"),
        (["--speed", "2"], "--speed is for the hosts of --hosts; those of a platform file have their own"),
        (["--hosts", "0"], "a platform needs at least 1 host, not 0"),
        (["--hosts", "4", "--speed", "-1"], "the speed of hosts must be a positive number, not -1.0"),
        (["-p", "nowhere.xml"], "nowhere.xml: cannot read this platform file (No such file or directory)"),
        (["--walltime-factor", "3"], "--walltime-factor is for --walltime max; give both, or none of them"),
        (
            ["--walltime", "max", "--walltime-factor", "0"],
            "the walltime factor must be a positive number, not 0.0",
        ),
        (
            ["-o", "depth=3"],
            "scheduler 'easy' has no option 'depth'; "
            "it knows selection, nodes, selection_seed, allocator, stuck, order, backfill, ends",
        ),
    ],
)
def test_what_cannot_be_run_is_one_line(arguments: list[str], error: str, tmp_path: Path) -> None:
    result = invoke("-w", SAMPLE, "-s", "easy", "-e", tmp_path / "out", *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"batsched-py: error: {error}\n")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_scheduler_is_told_the_known_ones() -> None:
    result = invoke("-w", SAMPLE, "-s", "magic")
    assert result.exit_code == 1
    assert result.stderr.startswith("batsched-py: error: there is no scheduler 'magic'; known are ")
    assert "easy" in result.stderr and "fcfs" in result.stderr


@pytest.mark.parametrize("option", ["depth", "=3"])
def test_an_option_of_the_scheduler_needs_a_key_and_a_value(option: str) -> None:
    result = invoke("-w", SAMPLE, "-s", "easy", "-o", option)
    assert result.exit_code == 2
    assert f"{option!r} is not of the form KEY=VALUE" in result.stderr


def test_a_log_that_does_not_say_its_size_needs_a_machine(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    result = invoke("-w", log, "-s", "easy")
    assert result.exit_code == 1
    assert result.stderr == (
        "batsched-py: error: no workload says how large its machine was; give --hosts N or -p PLATFORM.xml\n"
    )


def test_a_simulation_that_fails_leaves_no_file_that_looks_whole(tmp_path: Path) -> None:
    policy = tmp_path / "lazy_policy.py"
    policy.write_text(
        "from batsched_py.schedulers import Scheduler\n\n\n"
        "class Lazy(Scheduler):\n    name = 'lazy'\n\n    def schedule(self, cluster):\n        pass\n"
    )
    result = invoke("-w", SAMPLE, "-s", f"{policy}:Lazy", "-e", tmp_path / "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("batsched-py: error: deadlock at ")
    assert not list(tmp_path.glob("*.csv"))


def test_a_long_simulation_shows_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.001)
    result = invoke("-w", SAMPLE, "-s", "conservative", "-e", tmp_path / "out", "--json")
    assert result.exit_code == 0
    assert " of 3,000 jobs, " in result.stderr
    assert PROGRESS.sub("", result.stderr) == ""


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """A limit on the size of files looks like one."""
    command = [*COMMAND, "run", "-w", ROOT / "workloads" / "sample.swf", "-s", "fcfs", "-e", tmp_path / "out"]
    process = subprocess.run(
        ["bash", "-c", f"ulimit -f 8; exec {shlex.join(map(str, command))}"],
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    err = PROGRESS.sub("", process.stderr)
    assert (process.returncode, err) == (
        1,
        f"batsched-py: error: cannot write {tmp_path / 'out'}_jobs.csv: File too large\n",
    )
    assert not list(tmp_path.glob("*.csv"))


def test_names_with_commas_and_quotes_are_read_back(tmp_path: Path) -> None:
    names = ["plain", "a,b", 'say "hi"', "two\nlines"]
    jobs = [{"id": name, "subtime": 0, "res": 1, "walltime": 5, "profile": f"p{name}"} for name in names] + [
        {"id": "too,large", "subtime": 0, "res": 3, "walltime": 5, "profile": "pplain"}
    ]
    profiles = {f"p{name}": {"type": "delay", "delay": 1} for name in names}
    workload = tmp_path / "w.json"
    workload.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    arguments = ["run", "-w", workload, "-s", "fcfs", "-e", tmp_path / "out"]
    assert CliRunner().invoke(batsched_py, list(map(str, arguments))).exit_code == 0
    table = pd.read_csv(tmp_path / "out_jobs.csv")
    assert sorted(table["job_id"]) == sorted([*names, "too,large"])
    assert set(table["profile"]) == set(profiles)
    assert set(table["workload_name"]) == {"w0"}


FAILING = """from batsched_py.schedulers import Scheduler


class Late(Scheduler):
    name = "late"

    def schedule(self, cluster):
        if cluster.now > 1000:
            raise RuntimeError("too late")
        for job in list(cluster.queue):
            if cluster.fits(job):
                cluster.start(job)


class Idle(Scheduler):
    name = "idle"

    def schedule(self, cluster):
        pass
"""


@pytest.mark.parametrize("name", ["Late", "Idle"])
@pytest.mark.parametrize("option", ["", "--enable-machine-state-tracing"], ids=["native", "python"])
def test_a_run_that_fails_leaves_no_files(name: str, option: str, tmp_path: Path) -> None:
    (tmp_path / "policy.py").write_text(FAILING)
    policy = f"{tmp_path / 'policy.py'}:{name}"
    result = invoke("-w", SAMPLE, "-s", policy, "-e", tmp_path / "r" / "o", *option.split())
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert list((tmp_path / "r").iterdir()) == []


def test_what_cannot_be_done_is_found_before_files_are_opened(tmp_path: Path) -> None:
    pytest.importorskip("batsim")
    result = invoke("-w", SAMPLE, "-s", "pybatsim:easyBackfill", "--remarks", "-e", tmp_path / "o")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert list(tmp_path.iterdir()) == []


def test_help_shows_first_what_matters_first() -> None:
    shown = invoke("--help").stdout
    first = shown.partition("What matters first:\n")[2].partition("\n\n")[0]
    flags = re.findall(r"^  (?:-\w, )?--([a-z]+)", first, re.MULTILINE)
    assert flags == ["workload", "scheduler", "hosts", "users", "export"]
    groups = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert groups[0] == "What matters first"
    assert {"Workload", "Machine", "Failures", "This command"} <= set(groups)
