"""What others write in one file outside of the project: in commands, plans, Python and the test kit."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.campaign.store import Campaign
from batsched_py.errors import InputError
from batsched_py.testing import JobSpec, Workbench, figure_of, job, log_of, schedule_of, sessions_of
from tests.processes import call_here

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SAMPLE = ROOT / "workloads" / "sample.swf"

RULE = f"{EXAMPLES / 'session_rule.py'}:WorkingDay"
READER = f"{EXAMPLES / 'own_log.py'}:ThreeWords"
FIGURE = f"{EXAMPLES / 'own_figure.py'}:WaitsBySize"
MONITOR = f"{EXAMPLES / 'monitor.py'}:Fullness"
ALLOCATOR = f"{EXAMPLES / 'allocator.py'}:BothEnds"
DATA = f"{EXAMPLES / 'additional_data.py'}:RoomTemperature"
COOL = f"{EXAMPLES / 'additional_data.py'}:KeepCool"
HOTTEST = f"{EXAMPLES / 'additional_data.py'}:Hottest"

WORDS = "0 4 100\n10 8 50\n20 2 30\n"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The first jobs of a log."""
    lines = SAMPLE.read_text().splitlines()
    path = tmp_path / "small.swf"
    path.write_text("\n".join([line for line in lines if line.startswith(";")] + lines[30:190]) + "\n")
    return path


def run(tmp_path: Path, log: Path, *options: object) -> pd.DataFrame:
    """The jobs of a simulation on the command line."""
    words = ["run", "-w", log, "--hosts", "64", *options, "-e", tmp_path / "out"]
    code, _, error = call_here(words)
    assert (code, error) == (0, "")
    return pd.read_csv(tmp_path / "out_jobs.csv")


def campaign(tmp_path: Path, plan: str) -> Campaign:
    """The campaign of a plan, with the examples beside it."""
    for example in EXAMPLES.glob("*.py"):
        (tmp_path / example.name).write_bytes(example.read_bytes())
    (tmp_path / "plan.toml").write_text(plan)
    return bp.Plan.read(tmp_path / "plan.toml").run(tmp_path / "results", workers=1)


def same_jobs(result: bp.Result, ran: pd.DataFrame) -> None:
    """Python gives the jobs that the command has written."""
    times = ["submission_time", "starting_time", "finish_time"]
    pd.testing.assert_frame_equal(result.jobs[times], ran[times], check_dtype=False)
    assert result.jobs["job_id"].tolist() == ran["job_id"].astype(str).tolist()


def only_run(campaign: Campaign) -> Path:
    """The folder of the one run of a campaign."""
    (finished,) = campaign.finished()
    return finished.jobs_file.parent


# --- the page ------------------------------------------------------------------------------------


PAGE = (ROOT / "docs" / "extend.md").read_text()


def test_the_page_lists_every_kind_with_its_base_class_and_its_example() -> None:
    from pkgutil import walk_packages

    import batsched_py
    from batsched_py.plugins import Registry

    row = re.compile(r"^\| .*?\| `([\w.]+)`.*\[`(\w+\.py)`\]\(\.\./examples/\2\) \|$", re.MULTILINE)
    rows = row.findall(PAGE)
    bases = {base.rpartition(".")[2] for base, _ in rows}
    for module in walk_packages(batsched_py.__path__, "batsched_py."):
        for registry in (
            vars(importlib.import_module(module.name)).values() if _has_registry(module.name) else ()
        ):
            if isinstance(registry, Registry):
                shown = {cls.__name__ for cls in (registry.base, *registry.base.__subclasses__())}
                assert shown & bases, registry.kind
                assert f"`batsched_py{registry._group.removeprefix('batsched_py')}`" in PAGE or (
                    f"`{registry._group.removeprefix('batsched_py')}`" in PAGE
                )
    for base, example in rows:
        module, _, name = base.rpartition(".")
        home = batsched_py if module == "batsched_py" else importlib.import_module(f"batsched_py.{module}")
        assert name in (EXAMPLES / example).read_text() or name == "Behaviour"
        assert getattr(home, name)


def _has_registry(module: str) -> bool:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    return spec.origin is not None and "Registry[" in Path(spec.origin).read_text(errors="replace")


#: One file each, in nothing but which they are there.
NEW = {
    "corner.py": """
from batsched_py.schedulers.selection import Allocator


class Corner(Allocator):
    def hosts(self, free, count):
        return type(free).of(list(free)[-count:])
""",
    "tide.py": """
from math import sin

from batsched_py.decision.observers import AdditionalData


class Tide(AdditionalData):
    def measure(self, cluster):
        return sin(cluster.now / 7000)
""",
}


def test_a_new_allocator_and_a_new_kind_of_data_touch_one_file_each(small: Path, tmp_path: Path) -> None:
    """In a copy of the package, which stays as it is."""
    shutil.copytree(
        ROOT / "batsched_py", tmp_path / "batsched_py", ignore=shutil.ignore_patterns("__pycache__")
    )

    def files() -> dict[Path, bytes]:
        found = (path for path in (tmp_path / "batsched_py").rglob("*") if path.is_file())
        return {path: path.read_bytes() for path in found if "__pycache__" not in path.parts}

    before = files()
    for name, text in NEW.items():
        (tmp_path / name).write_text(text)
    words = ["run", "-w", small, "--hosts", "64", "-s", "easy", "-o", "allocator=corner.py:Corner"]
    done = subprocess.run(
        [sys.executable, "-m", "batsched_py", *words, "--data", "tide.py:Tide", "-e", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(tmp_path / "out_jobs.csv")["allocated_resources"].astype(str).str.endswith("63").any()
    assert set(pd.read_csv(tmp_path / "out_data.csv")["name"]) == {"tide"}
    assert files() == before


def test_an_allocator_is_not_ignored(small: Path, tmp_path: Path) -> None:
    words = ["run", "-w", small, "--hosts", "64", "-e", tmp_path / "out", "-o", f"allocator={ALLOCATOR}"]
    code, _, error = call_here([*words, "-s", "easy", "-o", "selection=spread"])
    assert code == 1 and "takes the place of the options selection and nodes" in error
    for option in (f"allocator={ALLOCATOR}", "selection=spread", "nodes=spread"):
        code, _, error = call_here([*words[:-2], "-s", "slurm", "-o", option])
        assert code == 1 and "leave out the options selection, nodes and allocator" in error


# --- policies, changes and models ----------------------------------------------------------------


def test_the_examples_of_policies_changes_and_models_run(small: Path, tmp_path: Path) -> None:
    policy = f"{EXAMPLES / 'own_policy.py'}:ShortPass"
    assert not run(tmp_path, small, "-s", policy).equals(run(tmp_path, small, "-s", "fcfs"))
    changed = ["change", small, tmp_path / "round.swf", f"{EXAMPLES / 'own_change.py'}:RoundUp", "minutes=30"]
    assert call_here(changed)[0] == 0
    asked = bp.read_log(tmp_path / "round.swf").columns.requested_time
    assert set(asked[asked > 0] % 1800) == {0}
    made = bp.generate(f"{EXAMPLES / 'own_model.py'}:Exponential", 2000, seed=1)
    assert made.columns.run_time.mean() == pytest.approx(3600, rel=0.1)
    assert made.columns.submit[-1] == pytest.approx(2000 * 3600 / 16 / 0.8, rel=0.1)


# --- session rules -------------------------------------------------------------------------------


def test_a_session_rule_is_the_same_everywhere(small: Path, tmp_path: Path) -> None:
    ran = run(tmp_path, small, "-s", "easy", "--users", "think-time", "--sessions", RULE)
    usual = run(tmp_path, small, "-s", "easy", "--users", "think-time")
    assert not ran.equals(usual)
    python = bp.simulate(small, "easy", hosts=64, users="think-time", sessions=RULE)
    same_jobs(python, ran)
    done = campaign(
        tmp_path,
        '[logs]\nx = { file = "small.swf" }\n[platforms]\nh = { hosts = 64 }\n[schedulers]\neasy = {}\n'
        '[users.think-time]\noptions = { sessions = "session_rule.py:WorkingDay" }\n',
    )
    pd.testing.assert_frame_equal(pd.read_csv(only_run(done) / "out_jobs.csv"), ran)


def test_both_engines_give_the_same_with_a_session_rule(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from batsched_py import native

    options = ("-s", "easy", "--users", "think-time", "--sessions", RULE)
    first = run(tmp_path, small, *options)
    monkeypatch.setattr(native, "library", None)
    pd.testing.assert_frame_equal(run(tmp_path, small, *options), first)


def test_the_command_for_sessions_knows_the_rule(small: Path) -> None:
    code, out, _ = call_here(["sessions", small, "--delimit", RULE, "--json"])
    assert code == 0
    assert json.loads(out)["delimiter"] == "WorkingDay"


def test_the_kit_cuts_sessions() -> None:
    day = 86400
    jobs = [
        JobSpec("a", 5 * 3600, 1, 60),
        JobSpec("b", 20 * 3600, 1, 60),
        JobSpec("c", day + 5 * 3600, 1, 60),
    ]
    assert sessions_of(RULE, jobs) == [["a", "b"], ["c"]]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("return submissions.nonsense", "failed: AttributeError"),
        ("return submissions", "gives 160 values for 160 jobs; it must give one for each but the first"),
    ],
)
def test_a_mistake_in_a_session_rule_is_one_line(tmp_path: Path, body: str, fault: str) -> None:
    own = tmp_path / "rule.py"
    own.write_text(
        "from batsched_py.workload.sessions import SessionRule\n\n\nclass Mine(SessionRule):\n"
        f"    def opens(self, submissions, finishes):\n        {body}\n"
    )
    jobs = [JobSpec(str(number), number, 1, 1) for number in range(160)]
    with pytest.raises(InputError, match=f"session rule 'Mine' {fault}"):
        sessions_of(f"{own}:Mine", jobs)


def test_a_session_rule_that_does_not_exist_is_told() -> None:
    with pytest.raises(InputError, match=r"write arrival:MINUTES, .* or give path/to/file\.py:ClassName"):
        sessions_of("nonsense", [])


# --- log readers ---------------------------------------------------------------------------------


def test_a_log_reader_is_the_same_everywhere(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text(WORDS)
    ran = run(tmp_path, tmp_path / "jobs.txt", "--log-kind", READER, "-s", "easy")
    assert ran["execution_time"].sum() == 180
    python = bp.simulate(tmp_path / "jobs.txt", "easy", hosts=64, log_kind=READER)
    same_jobs(python, ran)
    done = campaign(
        tmp_path,
        '[logs]\nx = { file = "jobs.txt", kind = "own_log.py:ThreeWords" }\n'
        "[platforms]\nh = { hosts = 64 }\n[schedulers]\neasy = {}\n",
    )
    pd.testing.assert_frame_equal(pd.read_csv(only_run(done) / "out_jobs.csv"), ran)


def test_the_kit_reads_logs() -> None:
    log = log_of(READER, WORDS)
    assert (log.submit.tolist(), log.run_time.tolist()) == ([0, 10, 20], [100, 50, 30])


def test_a_reader_need_not_write(tmp_path: Path) -> None:
    own = tmp_path / "reader.py"
    own.write_text(
        "from batsched_py.workload.sources import Source\n\n\nclass Mine(Source):\n    name = 'mine'\n"
        "    endings = ('.mine',)\n\n    def read(self, path):\n        return path.nonsense\n"
    )
    code, _, error = call_here(["convert", SAMPLE, tmp_path / "x.mine", "--to", f"{own}:Mine"])
    assert (code, error.count("\n")) == (1, 1)
    assert "logs of this kind can be read, but not written" in error
    words = ["run", "-w", SAMPLE, "--log-kind", f"{own}:Mine", "-s", "easy", "-e", tmp_path / "out"]
    code, _, error = call_here(words)
    assert (code, error.count("\n")) == (1, 1)
    assert f"({own}:9)" in error


# --- figures -------------------------------------------------------------------------------------


def test_a_figure_is_drawn_everywhere(small: Path, tmp_path: Path) -> None:
    run(tmp_path, small, "-s", "easy")
    code, _, error = call_here(
        [
            "plot",
            FIGURE,
            f"EASY={tmp_path / 'out_jobs.csv'}",
            "--least",
            "2",
            "--output",
            tmp_path / "waits.svg",
        ]
    )
    assert (code, error) == (0, "")
    assert "EASY" in (tmp_path / "waits.svg").read_text()
    python = bp.simulate(small, "easy", hosts=64)
    (axes,) = python.plot(FIGURE, least=2).axes
    sizes = python.jobs.groupby("requested_number_of_resources")["waiting_time"].agg(["mean", "size"])
    assert axes.lines[0].get_ydata() == pytest.approx(sizes[sizes["size"] > 1]["mean"] / 3600)
    with pytest.raises(InputError, match="figure 'load' does not show this, but the table of a campaign"):
        python.plot("load")


def test_a_figure_of_a_plan_stands_in_the_page(small: Path, tmp_path: Path) -> None:
    done = campaign(
        tmp_path,
        'figures = ["own_figure.py:WaitsBySize"]\n[logs]\nx = { file = "small.swf" }\n'
        "[platforms]\nh = { hosts = 64 }\n[schedulers]\neasy = {}\nfcfs = {}\n",
    )
    page = tmp_path / "page.html"
    assert call_here(["campaign", "report", done.folder, "--output", page])[0] == 0
    shown = page.read_text().partition("<h2>Figures of the plan</h2>")[2].partition("</section>")[0]
    assert "The mean wait of the jobs of each size, a line for each run." in shown
    assert "<svg" in shown and "x_h_easy" in shown and "x_h_fcfs" in shown
    archive = tmp_path / "archive.zip"
    assert call_here(["campaign", "export", done.folder, archive])[0] == 0
    for trust, number in ([], 0), (["--trust"], 1):
        folder = tmp_path / f"imported{number}"
        assert call_here(["campaign", "import", archive, folder, *trust])[0] == 0
        assert call_here(["campaign", "report", folder, "--output", page])[0] == 0
        text = page.read_text()
        assert text.count("<h2>Figures of the plan</h2>") == number
        assert ("Figures need --trust" in text) == (not number)


def test_the_kit_draws_figures() -> None:
    from batsched_py.schedulers.easy import Easy

    schedule = schedule_of(Easy(), [JobSpec("a", 0, 4, 10), JobSpec("b", 0, 4, 3600)], hosts=4)
    (axes,) = figure_of(FIGURE, schedule, schedule).axes
    assert [line.get_label() for line in axes.lines] == ["run 1", "run 2"]


def test_a_mistake_in_a_figure_is_one_line(small: Path, tmp_path: Path) -> None:
    own = tmp_path / "figure.py"
    own.write_text(
        "from batsched_py.analysis.plots.figures import RunsKind\n\n\nclass Mine(RunsKind):\n"
        "    def draw(self, sheet, runs, recorded):\n        runs.nonsense\n"
    )
    run(tmp_path, small, "-s", "easy")
    words = ["plot", f"{own}:Mine", tmp_path / "out_jobs.csv", "--output", tmp_path / "x.svg"]
    code, _, error = call_here(words)
    assert (code, error.count("\n")) == (1, 1)
    assert (
        f"figure 'mine' failed: AttributeError: 'list' object has no attribute 'nonsense' ({own}:6)" in error
    )


# --- monitors and additional data ----------------------------------------------------------------


def test_a_monitor_hears_the_same_everywhere(small: Path, tmp_path: Path) -> None:
    without = run(tmp_path, small, "-s", "easy")
    ran = run(tmp_path, small, "-s", "easy", "--monitor", MONITOR)
    pd.testing.assert_frame_equal(ran, without)
    heard = pd.read_csv(tmp_path / "out_monitor_fullness.csv")
    assert heard.columns.tolist() == ["time", "busy", "waiting", "ended"]
    assert heard.iloc[-1].tolist() == [ran["finish_time"].max(), 0, 0, len(ran)]
    full = ran[(ran["starting_time"] <= 1e5) & (ran["finish_time"] > 1e5)]["requested_number_of_resources"]
    assert heard[heard["time"] <= 1e5]["busy"].iloc[-1] == full.sum()
    python = bp.simulate(small, "easy", hosts=64, monitor=MONITOR)
    pd.testing.assert_frame_equal(python.monitored("fullness"), heard)
    done = campaign(
        tmp_path,
        '[logs]\nx = { file = "small.swf" }\n[platforms]\nh = { hosts = 64 }\n'
        '[schedulers]\neasy = { monitors = "monitor.py:Fullness" }\n',
    )
    pd.testing.assert_frame_equal(pd.read_csv(only_run(done) / "out_monitor_fullness.csv"), heard)


def test_monitors_hear_users_and_hosts(small: Path, tmp_path: Path) -> None:
    """Jobs that users submit are submitted like others; failures are told as they happen."""
    heard: list[str] = []

    from batsched_py.decision.observers import Monitor

    class Ear(Monitor):
        def submitted(self, job, now):  # type: ignore[no-untyped-def]
            heard.append("submitted")

        def started(self, running, now):  # type: ignore[no-untyped-def]
            heard.append("started")

        def ended(self, ended, state, now):  # type: ignore[no-untyped-def]
            heard.append("ended")

        def happened(self, event):  # type: ignore[no-untyped-def]
            heard.append(type(event).__name__)

        def decided(self, decision, now):  # type: ignore[no-untyped-def]
            heard.append(f"decided {type(decision).__name__}")

    result = bp.simulate(
        small,
        "easy",
        hosts=64,
        users="think-time",
        monitor=Ear,
        failures="exponential",
        mtbf=2e5,
        on_failure="resubmit",
    )
    counts = {word: heard.count(word) for word in heard}
    assert counts["submitted"] == counts["started"] == counts["ended"] == len(result.jobs)
    assert counts["HostsUnavailable"] > 0
    assert counts["decided KillJobs"] == (result.jobs["final_state"] == "COMPLETED_KILLED").sum() > 0


def test_data_is_the_same_everywhere(small: Path, tmp_path: Path) -> None:
    ran = run(tmp_path, small, "-s", COOL, "-o", "limit=25", "--data", DATA)
    table = pd.read_csv(tmp_path / "out_data.csv")
    assert set(table["name"]) == {"room"}
    code, out, _ = call_here(["metrics", tmp_path / "out_jobs.csv", "--metric", HOTTEST, "--json"])
    assert code == 0
    assert json.loads(out)["metrics"]["hottest_room"] == table["value"].max()
    python = bp.simulate(small, COOL, options={"limit": 25}, hosts=64, data=DATA)
    pd.testing.assert_frame_equal(python.data, table)
    same_jobs(python, ran)
    assert python.measure(HOTTEST) == table["value"].max()
    done = campaign(
        tmp_path,
        'metrics = ["additional_data.py:Hottest"]\n[logs]\nx = { file = "small.swf" }\n'
        "[platforms]\nh = { hosts = 64 }\n[schedulers.cool]\n"
        'name = "additional_data.py:KeepCool"\noptions = { limit = 25 }\n'
        'data = "additional_data.py:RoomTemperature"\n',
    )
    pd.testing.assert_frame_equal(pd.read_csv(only_run(done) / "out_data.csv"), table)
    assert done.table()["hottest_room"].tolist() == [table["value"].max()]


def test_the_kit_has_monitors_and_data() -> None:
    bench = Workbench(4, COOL, monitors=[MONITOR], data=[DATA])
    bench.submit(job("a", size=4, walltime=9e4))
    assert bench.decide().started == ["a"]
    bench.now = 8e4
    bench.submit(job("b", size=4))
    bench.decide()
    assert bench.cluster.outside.data["room"] == pytest.approx(35)


def test_no_engine_but_python_runs_observers(small: Path, tmp_path: Path) -> None:
    from batsched_py.decision.observers import ObservedProcess
    from batsched_py.engines import why_not_native
    from batsched_py.schedulers.easy import Easy
    from batsched_py.simulator.outputs import Outputs
    from batsched_py.simulator.platform import Platform
    from batsched_py.simulator.setup import Setup

    why = why_not_native(Setup(Platform.homogeneous(4), ()), ObservedProcess(Easy()), Outputs(None))
    assert why in (
        "monitors, and data that a class computes over time",
        "the native engine is not installed, or turned off",
    )


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--data", "OWN:Nan"], "data 'nan' gives nan at time 0, which is no finite number"),
        (["--data", "OWN:Raises"], "data 'raises' failed: AttributeError"),
        (["--data", "OWN:Raises", "--data", "OWN:Raises"], "two are called 'raises'"),
        (["--monitor", "OWN:Deaf"], "monitor 'deaf' failed: ZeroDivisionError: division by zero (OWN:17)"),
        (["--monitor", "OWN:Busy"], "monitor 'busy' has decided something at time"),
        (["--monitor", "OWN:Spaced"], "is made of letters, digits, _ and -, not 'a b'"),
        (["--monitor", "OWN:Nan"], "defines no monitor 'Nan' (it defines Deaf, Spaced, Busy)"),
        (["--monitor", "nobody"], "there is no monitor 'nobody'; none is installed; give path/to/file.py"),
    ],
)
def test_mistakes_of_observers_are_one_line(
    small: Path, tmp_path: Path, options: list[str], fault: str
) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from batsched_py.decision.observers import AdditionalData, Monitor\n\n\n"
        "class Nan(AdditionalData):\n    def measure(self, cluster):\n        return float('nan')\n\n\n"
        "class Raises(AdditionalData):\n    def measure(self, cluster):\n        return cluster.none\n\n\n"
        "class Deaf(Monitor):\n    def submitted(self, job, now):\n        if job:\n            1 / 0\n\n\n"
        "class Spaced(Monitor):\n    name = 'a b'\n\n\n"
        "class Busy(Monitor):\n    def settled(self, cluster):\n        cluster.call_at(cluster.now + 1)\n"
    )
    words = [option.replace("OWN", str(own)) for option in options]
    code, _, error = call_here(
        ["run", "-w", small, "--hosts", "64", "-s", "easy", *words, "-e", tmp_path / "out"]
    )
    assert (code, error.count("\n")) == (1, 1)
    assert fault.replace("OWN", str(own)) in error
    assert not (tmp_path / "out_jobs.csv").exists()


def test_observers_of_a_slow_scheduler_and_of_messages(small: Path, tmp_path: Path) -> None:
    """The same is heard when both sides exchange messages, one way or the other."""
    slow = run(tmp_path, small, "-s", "easy", "--scheduling-delay", "5", "--monitor", MONITOR)
    heard = pd.read_csv(tmp_path / "out_monitor_fullness.csv")
    assert heard["ended"].iloc[-1] == len(slow)


# --- allocators ----------------------------------------------------------------------------------


def test_an_allocator_is_the_same_everywhere(small: Path, tmp_path: Path) -> None:
    usual = run(tmp_path, small, "-s", "easy")
    ran = run(tmp_path, small, "-s", "easy", "-o", f"allocator={ALLOCATOR}")
    assert (ran["starting_time"] == usual["starting_time"]).all()
    small_jobs = ran["requested_number_of_resources"] < 8
    assert (ran["allocated_resources"] != usual["allocated_resources"])[small_jobs].any()
    assert ran["allocated_resources"][small_jobs].iloc[0].endswith("63")
    written = (tmp_path / "out_jobs.csv").read_bytes()
    bp.simulate(small, "easy", options={"allocator": ALLOCATOR}, hosts=64, export=tmp_path / "python")
    assert (tmp_path / "python_jobs.csv").read_bytes() == written
    done = campaign(
        tmp_path,
        '[logs]\nx = { file = "small.swf" }\n[platforms]\nh = { hosts = 64 }\n[schedulers]\neasy = {}\n'
        '[allocators]\nlowest = { selection = "lowest" }\nends = { allocator = "allocator.py:BothEnds" }\n',
    )
    jobs = {each.axes["allocator"]: each.jobs_file.read_bytes() for each in done.finished()}
    assert jobs["ends"] == written != jobs["lowest"]


def test_an_allocator_chooses_nodes_and_hosts_in_them() -> None:
    from batsched_py.schedulers.easy import Easy
    from batsched_py.simulator.machine_files import NodeKind, platform_of

    machine = platform_of([NodeKind(["n0", "n1", "n2", "n3"], 4, {})], {}, "four nodes")
    jobs = [JobSpec("small", 0, 1, 10), JobSpec("large", 1, 6, 10), JobSpec("other", 2, 1, 10)]
    schedule = schedule_of(Easy(allocator=ALLOCATOR), jobs, machine).set_index("job_id")
    assert schedule["allocated_resources"].to_dict() == {"small": "15", "large": "0-5", "other": "14"}


def test_what_conservative_promises_is_not_checked_for_an_allocator(small: Path) -> None:
    machine = ROOT / "platforms" / "nodes64.toml"
    result = bp.simulate(
        small, "conservative", options={"allocator": ALLOCATOR}, platform=machine, reject_larger=True
    )
    assert result.validate() == []
    with pytest.raises(InputError, match="cannot be checked for an allocator of your own"):
        result.validate("conservative")


def test_the_kit_tries_allocators() -> None:
    from batsched_py.schedulers.easy import Easy

    bench = Workbench(16, lambda: Easy(allocator=ALLOCATOR))
    bench.submit(job("small"), job("large", size=4))
    bench.decide()
    assert {running.job.name: str(running.hosts) for running in bench.cluster.running} == {
        "small": "15",
        "large": "0-3",
    }


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("Few", "allocator 'few' gives 0, and not 2 of the hosts 0-3"),
        ("Wild", "allocator 'wild' gives 8-9, and not 2 of the hosts 0-3"),
        ("Raises", "allocator 'raises' failed: ZeroDivisionError: division by zero (OWN:17)"),
        ("Nobody", "defines no allocator 'Nobody' (it defines Few, Wild, Raises)"),
    ],
)
def test_mistakes_of_allocators_are_one_line(tmp_path: Path, name: str, fault: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from batsched_py.protocol.hosts import HostSet\n"
        "from batsched_py.schedulers.selection import Allocator\n\n\n"
        "class Few(Allocator):\n    def hosts(self, free, count):\n        return free.lowest(1)\n\n\n"
        "class Wild(Allocator):\n    def hosts(self, free, count):\n        return HostSet.parse('8-9')\n\n\n"
        "class Raises(Allocator):\n    def hosts(self, free, count):\n        return 1 / 0\n"
    )
    (tmp_path / "jobs.txt").write_text("0 2 100\n")
    words = ["-w", tmp_path / "jobs.txt", "--log-kind", READER, "--hosts", "4", "-s", "easy"]
    code, _, error = call_here(["run", *words, "-o", f"allocator={own}:{name}", "-e", tmp_path / "out"])
    assert (code, error.count("\n")) == (1, 1)
    assert fault.replace("OWN", str(own)) in error
