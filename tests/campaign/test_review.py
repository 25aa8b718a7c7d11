"""Studies that are planted with one known mistake each, and sound ones: `review` must tell which is which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.analysis.outcome import Outcome
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.review import Check, StudiedRun, Study, review
from batsched_py.campaign.review.conclusions import _generality
from batsched_py.campaign.review.facts import of_campaign, of_plan
from batsched_py.campaign.store import Campaign, conduct, planned_campaign, runs_to_do
from batsched_py.cli.main import batsched_py
from batsched_py.experiment import Actors, Choice, Experiment, Scenario, Workloads
from tests.campaigns import Here
from tests.runs import Measured

HOSTS = 32
METRICS = ["mean_waiting_time", "mean_bounded_slowdown"]


def write(
    path: Path,
    seed: int,
    load: float = 0.55,
    days: int = 12,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """A log of short jobs that come at random, with estimates."""
    random = np.random.default_rng(seed)
    sizes = random.choice([1, 2, 4, 8], 100 * days)
    run_times = random.lognormal(8.0, 0.7, len(sizes)).round() + 1
    span = float(sizes @ run_times) / (HOSTS * load)
    jobs: dict[str, Any] = {
        "submit": np.sort(random.uniform(0, span, len(sizes))).round(),
        "run": run_times,
        "size": sizes,
        "requested": run_times * random.integers(2, 6, len(sizes)),
        "user": random.integers(1, 30, len(sizes)),
    }
    if change is not None:
        change(jobs)
    order = np.argsort(jobs["submit"], kind="stable")
    columns = zip(
        *(jobs[name][order] for name in ("submit", "run", "size", "requested", "user")), strict=True
    )
    lines = [
        f"{n} {a:.0f} 0 {r:.0f} {q} -1 -1 {q} {t:.0f} -1 1 {u} -1 -1 -1 -1 -1 -1\n"
        for n, (a, r, q, t, u) in enumerate(columns, start=1)
    ]
    path.write_text(f"; MaxProcs: {HOSTS}\n; UnixStartTime: 0\n" + "".join(lines))
    return path


SCHEDULERS = "[schedulers]\nfcfs = {}\neasy = {}\nsjbf = {name = 'easy-sjbf'}\n"
HEAD = 'metrics = ["mean_waiting_time"]\nbaseline = "easy"\nparts = "1d"\n'


def plan(
    folder: Path, head: str = HEAD, schedulers: str = SCHEDULERS, more: str = "", logs: str = ""
) -> Path:
    """A plan over two logs beside it, unless it says otherwise."""
    named = logs or 'a = {file = "a.swf"}\nb = {file = "b.swf"}\n'
    file = folder / "plan.toml"
    file.write_text(f"{head}[logs]\n{named}{schedulers}{more}")
    return file


def done(file: Path, only: int | None = None) -> list[Check]:
    """What a review says after the runs of a plan, or the first of them."""
    read = read_plan(file)
    while read.unmade:
        from batsched_py.campaign.prepare import make

        for log in read.unmade:
            make(log.path, log.recipe)
        read = read_plan(file)
    campaign = planned_campaign(read, file.parent / "out")
    assert all(
        result.error is None for result in conduct(campaign, runs_to_do(read, campaign)[:only], Here())
    )
    return review(of_campaign(Campaign.open(campaign.folder)))


def fails(checks: list[Check]) -> dict[str, str]:
    """What fails; whatever is not well has a number (or says one, or no) and a remedy."""
    found: dict[str, str] = {}
    for check in checks:
        assert check.verdict == "ok" or (check.remedy and re.search(r"\d|\bone\b|\bno\b", check.found)), check
        if check.verdict == "fail":
            found[check.name] = "; ".join(filter(None, [found.get(check.name), check.found]))
    return found


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with two sound logs."""
    write(tmp_path / "a.swf", 1)
    write(tmp_path / "b.swf", 2)
    return tmp_path


# --- planted: found in the plan already -----------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "name", "found"),
    [
        ({"logs": 'a = {file = "a.swf"}\n'}, "generality", "one log is no generalisation"),
        ({"head": HEAD.replace("1d", "4d")}, "statistics", "2 parts are too few for any test"),
        ({"head": HEAD.replace('parts = "1d"\n', "")}, "statistics", "there is one run of each kind"),
        (
            {
                "head": HEAD.replace('parts = "1d"', "repetitions = 5"),
                "schedulers": SCHEDULERS + "random = {}\n",
            },
            "statistics",
            "5 seeds on one workload are about chance in the policy",
        ),
        (
            {"head": HEAD.replace('"easy"', '"fcfs"'), "schedulers": "[schedulers]\nfcfs = {}\nsjf = {}\n"},
            "baselines",
            "EASY is not among the 2 policies",
        ),
        (
            {
                "head": HEAD + "control = false\n",
                "more": "[platforms]\nhalf = {hosts = 16}\n[users]\nreact = {name = 'think-time'}\n",
            },
            "control",
            "users react to a machine of 16 hosts, and none to the log's own",
        ),
        (
            {
                "head": 'metrics = ["makespan", "utilization"]\nbaseline = "easy"\n',
                "more": "[users]\nreact = {name = 'think-time'}\n",
            },
            "control",
            "makespan of 6 whole runs with users is when the last user is ready",
        ),
        (
            {
                "logs": "a = {model = 'lublin', jobs = 3000, processors = 64}\n"
                "b = {model = 'lublin', jobs = 3000, processors = 64, seed = 2}\n",
                "head": HEAD.replace("1d", "6h"),
            },
            "generated logs",
            "a is generated by the model lublin, and no recorded log is in the study",
        ),
    ],
)
def test_a_mistake_is_found_in_the_plan(logs: Path, words: dict[str, str], name: str, found: str) -> None:
    file = plan(logs, **words)
    read = read_plan(file)
    if read.unmade:
        from batsched_py.campaign.prepare import make

        for log in read.unmade:
            make(log.path, log.recipe)
        read = read_plan(file)
    checks = fails(review(of_plan(read)))
    assert checks[name].startswith(found), checks


REACTING = "[users]\nreact = {name = 'think-time'}\n"


def control_of(file: Path) -> str:
    """What a review of a plan finds wrong with its users, after its logs are made."""
    from batsched_py.campaign.prepare import make

    for log in read_plan(file).unmade:
        make(log.path, log.recipe)
    return fails(review(of_plan(read_plan(file)))).get("control", "")


@pytest.mark.parametrize("change", ["load factor=1.2", "load factor=1.2 by=arrivals"])
def test_a_load_that_makes_other_users_is_found(logs: Path, change: str) -> None:
    """As an axis of the plan it is refused; a log can still be made so."""
    named = f"a = {{file = 'a.swf', changes = ['{change}']}}\nb = {{file = 'b.swf'}}\n"
    found = control_of(plan(logs, more=REACTING, logs=named))
    assert "made by other times between arrivals, which makes other users" in found


@pytest.mark.parametrize(
    "users", ["[users]\nstay = {name = 'rigid'}\n", "[users]\nmany = {name = 'resample'}\n"]
)
def test_loads_of_rigid_users_and_of_populations_are_sound(logs: Path, users: str) -> None:
    file = plan(logs, head=HEAD + "loads = [1.0, 1.2]\n", more=users)
    assert control_of(file) == ""


@pytest.mark.parametrize("entry", ["name = 'easy-sjbf'", "name = 'easy', options = {order = 'shortest'}"])
def test_easy_with_the_shortest_job_first_is_known_by_either_name(logs: Path, entry: str) -> None:
    file = plan(logs, schedulers=f"[schedulers]\nfcfs = {{}}\neasy = {{}}\nsjf = {{{entry}}}\n")
    (check,) = (each for each in review(of_plan(read_plan(file))) if each.name == "baselines")
    assert check.verdict == "ok"


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([5.0, 6.0, 5.0, 6.0, 5.0, 6.0, 7.0], "ok"),
        ([5.0, 6.0, 5.5], "ok"),
        ([9.0, -0.1, 9.0, 9.0, 9.0, -0.1, 9.0], "warn"),
    ],
    ids=["in all parts", "in too few parts for the sign test", "not in all"],
)
def test_differences_that_a_few_parts_make_are_found(differences: list[float], verdict: str) -> None:
    measured = [
        Measured({"log": "a", "part": str(part), "scheduler": name}, {"mean_waiting_time": wait})
        for part, difference in enumerate(differences, start=1)
        for name, wait in (("easy", 20.0), ("fcfs", 20.0 + difference))
    ]
    run = StudiedRun(name="a", axes={}, measured=measured)
    found = review(Study(runs=[run], metrics=["mean_waiting_time"], baseline="easy"))
    (check,) = (each for each in found if each.name == "tests")
    assert check.verdict == verdict
    assert check.found.startswith("1 of 1 tested differences are shown")


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        (0.0, {"ok": 20}),
        (0.5, {"ok": 10, "warn": 7, "fail": 3}),
        (0.7, {"ok": 1, "warn": 11, "fail": 8}),
    ],
    ids=["noise", "half of it", "most of it"],
)
def test_parts_that_depend_on_each_other_are_found(kept: float, found: dict[str, int]) -> None:
    """Three policies against EASY by two metrics, in nine parts that keep some of the part before."""
    random = np.random.default_rng(3)
    told: Counter[str] = Counter()
    for _ in range(20):
        noise = random.standard_normal((3, 2, 40))
        for place in range(1, 40):
            noise[:, :, place] += kept * noise[:, :, place - 1]
        measured = [
            Measured(
                {"log": "a", "part": str(part), "scheduler": name},
                {metric: 20.0 + wait for metric, wait in zip(METRICS, waits, strict=True)},
            )
            for part in range(9)
            for name, waits in (
                ("easy", (0.0, 0.0)),
                *((f"s{number}", noise[number, :, 31 + part]) for number in range(3)),
            )
        ]
        run = StudiedRun(name="a", axes={}, measured=measured)
        checks = review(Study(runs=[run], metrics=METRICS, baseline="easy"))
        told.update(check.verdict for check in checks if check.name == "clustering")
    assert dict(told) == found


def under(rule: str, log: str, easy_is_better: bool | None) -> StudiedRun:
    """Two policies in seven parts of a log, with users whose sessions are cut by a rule."""
    waits = {"easy": 20.0, "conservative": {True: 26.0, False: 14.0, None: 20.31}[easy_is_better]}
    measured = [
        Measured(
            {"log": log, "part": str(part), "scheduler": name, "users": rule},
            {"mean_waiting_time": wait + 3 * part % 7 / 10 * (name == "easy")},
        )
        for part in range(7)
        for name, wait in waits.items()
    ]
    scheduler, users = Choice("easy"), Choice("think-time", {"sessions": rule})
    scenario = Scenario(workloads=Workloads(files=("a.swf",)))
    experiment = Experiment(scenario=scenario, actors=Actors(scheduler=scheduler, users=users))
    return StudiedRun(name=rule, axes={"log": log, "users": rule}, experiment=experiment, measured=measured)


@pytest.mark.parametrize(
    ("places", "verdict", "found"),
    [
        (
            [("arrival:20", "a", True), ("arrival:20", "b", False), ("arrival:360", "a", False)],
            "fail",
            "easy is better than conservative in mean_waiting_time with a, arrival:20, and worse with a, "
            "arrival:360",
        ),
        (
            [("arrival:20", "a", True), ("arrival:20", "b", False)],
            "warn",
            "with a, arrival:20, and worse with b",
        ),
        (
            [("arrival:20", "a", True), ("arrival:360", "a", True)],
            "ok",
            "none of 2 differences that are shown is the opposite under another of 2 rules",
        ),
        (
            [("arrival:20", "a", True), ("arrival:360", "a", None), ("max:20", "a", None)],
            "warn",
            "easy better than conservative in mean_waiting_time (a): shown with arrival:20 only, not under "
            "the other 2",
        ),
    ],
)
def test_conclusions_that_a_rule_for_sessions_turns_round_are_found(
    places: list[tuple[str, str, bool | None]], verdict: str, found: str
) -> None:
    runs = [under(*place) for place in places]
    checks = review(Study(runs=runs, metrics=["mean_waiting_time"], baseline="easy"))
    (check,) = (each for each in checks if each.name == "robustness")
    assert check.verdict == verdict
    assert found in check.found


@pytest.mark.parametrize(("users", "verdict"), [("resample", "ok"), ("think-time", "fail")])
def test_seeds_are_workloads_where_they_are_populations(logs: Path, users: str, verdict: str) -> None:
    head = HEAD.replace('parts = "1d"', "repetitions = 6")
    schedulers = SCHEDULERS + "random = {}\n"
    file = plan(logs, head=head, schedulers=schedulers, more=f"[users]\nmany = {{name = '{users}'}}\n")
    (check,) = (each for each in review(of_plan(read_plan(file))) if each.name == "statistics")
    assert check.verdict == verdict
    assert ("6 seeds, each another population" in check.found) == (verdict == "ok")


def test_missing_estimates_are_found(logs: Path) -> None:
    write(logs / "a.swf", 1, change=lambda jobs: jobs["requested"].__imul__(-1))
    found = fails(review(of_plan(read_plan(plan(logs)))))
    assert found == {
        "estimates": "100% of the jobs of a have no requested time, so the policy is told their run time"
    }


def test_modelled_estimates_are_not_missing_and_raised_ones_are_told(logs: Path) -> None:
    """Every other job requested nothing, and the others half of what they ran."""

    def half(jobs: dict[str, Any]) -> None:
        jobs["requested"] = np.where(np.arange(len(jobs["run"])) % 2, -1, jobs["run"] // 2)

    def found(walltime: str) -> list[tuple[str, str]]:
        named = "".join(f"{log} = {{file = '{log}.swf', walltime = '{walltime}'}}\n" for log in "ab")
        checks = review(of_plan(read_plan(plan(logs, logs=named))))
        return [(each.found, each.remedy) for each in checks if each.name == "estimates"]

    write(logs / "a.swf", 1, change=half)
    told = "so the policy is told their run time"
    raised = (
        f"50% of the jobs of a requested less than they ran, {told}",
        "make other estimates (change `estimates`), or use policies that need none",
    )
    missing = (
        f"50% of the jobs of a have no requested time, {told}",
        "make estimates (walltime = 'modelled'), or use policies that need none",
    )
    assert found("at-least-run-time") == [missing, raised]
    assert found("modelled") == [raised]


def test_flurries_are_found(logs: Path) -> None:
    def flurry(jobs: dict[str, Any]) -> None:
        second = (jobs["submit"] > 7 * 86400) & (jobs["submit"] < 14 * 86400)
        few = np.flatnonzero(~second)[::6]
        kept = np.concatenate([np.flatnonzero(second), few])
        for name in jobs:
            jobs[name] = jobs[name][kept]
        jobs["user"][: int(second.sum())] = 7

    write(logs / "a.swf", 1, days=30, change=flurry)
    found = fails(review(of_plan(read_plan(plan(logs)))))
    assert "in flurries of single users" in found["log"]


# --- planted: found in what came of it ------------------------------------------------------------


@pytest.mark.slow
def test_saturation_is_found(logs: Path) -> None:
    write(logs / "a.swf", 1, load=1.4)
    found = fails(done(plan(logs)))["steady state"]
    assert found.startswith("3 of 6 runs have none (a_recorded_")


@pytest.mark.slow
def test_parts_on_an_empty_machine_are_found(logs: Path) -> None:
    cut = "".join(f"{log} = {{file = '{log}.swf', changes = ['part number=2 every=3d']}}\n" for log in "ab")
    found = fails(done(plan(logs, head=HEAD.replace('parts = "1d"\n', ""), logs=cut)))
    assert found["window"] == "the log of a_recorded_fcfs is a part that begins on an empty machine (6 runs)"


@pytest.mark.slow
def test_few_jobs_that_make_the_mean_are_found(logs: Path) -> None:
    """Jobs as large as the machine now and then: who lets them starve is worse on average, for them alone."""

    def wide(jobs: dict[str, Any]) -> None:
        jobs["size"][:] = 1
        jobs["size"][5::110] = HOSTS
        jobs["run"][5::110] = 60
        jobs["requested"][:] = jobs["run"]

    for seed, log in enumerate("ab"):
        write(logs / f"{log}.swf", seed, load=0.75, days=30, change=wide)
    schedulers = "[schedulers]\neasy = {}\nfiller = {}\nsjbf = {name = 'easy-sjbf'}\n"
    checks = done(plan(logs, schedulers=schedulers))
    found = fails(checks)["dominance"]
    assert (
        "without these, filler is better than easy in mean_waiting_time, and not the other way round" in found
    )


@pytest.mark.slow
def test_rejected_jobs_are_found(logs: Path) -> None:
    found = fails(done(plan(logs, more="[platforms]\nsmall = {hosts = 7, reject_larger = true}\n"), only=1))
    assert "are rejected, and in no mean" in found["log"]
    assert found["completeness"] == "5 planned runs failed or were not done"


@pytest.mark.slow
def test_one_user_who_makes_the_mean_is_found(logs: Path) -> None:
    """All wide jobs are of one user: without this one, it is the other way round."""

    def wide(jobs: dict[str, Any]) -> None:
        jobs["size"][:] = 1
        jobs["size"][5::95] = HOSTS
        jobs["user"][:] = np.arange(len(jobs["user"])) % 20 + 1
        jobs["user"][5::95] = 77
        jobs["run"][5::95] = 60
        jobs["requested"][:] = jobs["run"]

    for seed, log in enumerate("ab"):
        write(logs / f"{log}.swf", seed, load=0.75, days=30, change=wide)
    schedulers = "[schedulers]\neasy = {}\nfiller = {}\nsjbf = {name = 'easy-sjbf'}\n"
    found = fails(done(plan(logs, schedulers=schedulers)))["dominance"]
    assert "without the jobs of user 77, filler is better than easy in mean_waiting_time" in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "name", "found"),
    [
        (
            {"head": HEAD.replace('parts = "1d"', 'measure = "1min:"')},
            "window",
            "when the machine still fills",
        ),
        (
            {"head": HEAD.replace('parts = "1d"', 'measure = "2d:3d"')},
            "window",
            "of the time of a_recorded_fcfs",
        ),
        (
            {"head": HEAD.replace("mean_waiting_time", 'makespan", "utilization')},
            "metrics",
            "makespan and utilization of users who do not react tell what was submitted",
        ),
        (
            {"more": "[[exclude]]\nlog = 'b'\nscheduler = 'easy'\n"},
            "completeness",
            "b_recorded_fcfs has no easy under the same conditions",
        ),
        ({"more": "[platforms]\nlarge = {hosts = 4096}\n"}, "contention", "at most 0.0% of the jobs wait"),
        (
            {"logs": 'a = {file = "a.swf"}\nb = {file = "a.swf", changes = ["load factor=0.9"]}\n'},
            "generality",
            "a and b are one log under two names: 100% of their jobs are the same",
        ),
    ],
)
def test_what_else_a_reviewer_would_find(logs: Path, words: dict[str, str], name: str, found: str) -> None:
    assert found in fails(done(plan(logs, **words)))[name]


PICKY = """
from batsched_py.schedulers.fcfs import Fcfs

class Picky(Fcfs):
    name = "picky"

    def schedule(self, cluster):
        for job in list(cluster.queue)[:1]:
            if cluster.now - job.submission_time > 1500:
                cluster.reject(job)
        super().schedule(cluster)
"""


@pytest.mark.slow
def test_a_policy_that_leaves_out_jobs_is_found(logs: Path) -> None:
    (logs / "picky.py").write_text(PICKY)
    found = fails(done(plan(logs, schedulers=SCHEDULERS + "picky = {name = 'picky.py:Picky'}\n")))
    assert found["same jobs"].startswith("a_recorded_picky does ")


def waiting(name: str, seed: str, early: float, later: float) -> StudiedRun:
    """A run whose jobs wait for some seconds in the first twentieth of the time, and for others later."""
    count = 400
    submitted = np.arange(count) * 60.0
    waits = np.where(np.arange(count) < count // 20, early, later)
    jobs = pd.DataFrame(
        {
            "job_id": np.arange(count).astype(str),
            "final_state": "COMPLETED_SUCCESSFULLY",
            "submission_time": submitted,
            "starting_time": submitted + waits,
            "execution_time": 60.0,
            "finish_time": submitted + waits + 60,
            "waiting_time": waits,
            "turnaround_time": waits + 60,
        }
    )
    return StudiedRun(
        name=f"{name}{seed}", axes={"log": name, "seed": seed}, outcome=lambda: Outcome(jobs, 4)
    )


@pytest.mark.parametrize(
    ("waits", "verdict", "found"),
    [
        ([(5000.0, 600.0)], "fail", "mean wait is -27% without the first and last tenth of the time (a1)"),
        ([(5000.0, 600.0), (0.0, 9000.0)], "ok", "time (a, mean of 2 seeds)"),
        ([(200.0, 1.0)], "ok", "mean waits are below 60 s"),
    ],
    ids=["one run", "the worst of its seeds only", "nobody waits"],
)
def test_waits_that_depend_on_the_empty_machine_are_found(
    waits: list[tuple[float, float]], verdict: str, found: str
) -> None:
    runs = [waiting("a", str(seed), *each) for seed, each in enumerate(waits, start=1)]
    (check,) = (each for each in review(Study(runs=runs, is_campaign=False)) if each.name == "window")
    assert check.verdict == verdict
    assert found in check.found


# --- sound -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"head": HEAD + "loads = [0.8, 1.0]\n"},
        {"head": HEAD + "seeds = [1, 2]\n", "schedulers": SCHEDULERS + "random = {}\n"},
        {"more": "[users]\nreact = {name = 'think-time'}\n"},
        {"head": HEAD.replace("1d", "18h").replace("waiting_time", "bounded_slowdown")},
    ],
    ids=["plain", "loads", "seeds", "users", "slowdown"],
)
def test_a_sound_study_passes(logs: Path, words: dict[str, str]) -> None:
    checks = done(plan(logs, **words))
    assert fails(checks) == {}
    assert {check.name for check in checks} >= {"steady state", "window", "statistics", "dominance", "log"}


# --- how it is told --------------------------------------------------------------------------------


def test_the_command_tells_each_check_and_fails(logs: Path) -> None:
    file = plan(logs, logs='a = {file = "a.swf"}\n')
    told = CliRunner().invoke(batsched_py, ["review", str(file)])
    assert told.exit_code == 1
    assert told.stdout.splitlines()[0] == (
        "fail generality: one log is no generalisation -> add logs of other machines, or say that it is "
        "about this one"
    )
    ran = CliRunner().invoke(batsched_py, ["campaign", "run", str(file), "-d", str(logs / "out"), "-j", "1"])
    assert "batsched-py: review: fail generality" in ran.stderr
    page = logs / "report.html"
    made = CliRunner().invoke(batsched_py, ["campaign", "report", str(logs / "out"), "--output", str(page)])
    assert made.exit_code == 0, made.output
    assert "<li>fail generality: one log is no generalisation" in page.read_text()
    wrong = CliRunner().invoke(batsched_py, ["review", str(logs / "a.swf")])
    assert wrong.exit_code != 0
    assert "give a PREFIX_jobs.csv, the folder of a campaign, or a plan" in wrong.output


def test_a_run_is_reviewed_in_python_and_by_its_file(logs: Path) -> None:
    write(logs / "a.swf", 1, load=1.4)
    result = bp.simulate(logs / "a.swf", "easy", export=logs / "out", progress=False)
    assert [check.name for check in result.review() if check.verdict == "fail"] == ["steady state"]
    assert result.overview.unstable
    told = CliRunner().invoke(batsched_py, ["review", str(logs / "out_jobs.csv")])
    assert told.exit_code == 1
    assert told.stdout.startswith("fail steady state: 1 of 1 runs have none")
    assert "warn log: no log is known, and so no estimates and no users -> say what `run`" in told.stdout


@pytest.mark.parametrize("machine", [{"hosts": 16}, {"hosts": 32, "speed": 0.8}])
def test_users_on_another_machine_need_a_control(logs: Path, machine: dict[str, Any]) -> None:
    """Known of a run, of its files if the log is told, and not found fault with after a control."""
    write(logs / "a.swf", 1, load=0.3, days=3)
    settings: dict[str, Any] = {"users": "think-time", "progress": False}
    result = bp.simulate(logs / "a.swf", "easy", export=logs / "out", **settings, **machine)
    assert "users react to a machine of" in fails(result.review())["control"]
    if machine["hosts"] == 16:
        arguments = ["review", str(logs / "out_jobs.csv"), "-w", str(logs / "a.swf")]
        told = CliRunner().invoke(batsched_py, [*arguments, "--users", "think-time"])
        assert told.exit_code == 1
        assert "fail control: users react to a machine of 16 hosts" in told.stdout
        assert "log: nothing stands out" in told.stdout
        refused = CliRunner().invoke(batsched_py, arguments)
        assert "its users react; say who they are" in refused.output
    result.control()
    assert "control" not in fails(result.review())


def test_two_logs_of_the_same_single_job_are_one() -> None:
    facts: Any = SimpleNamespace(kinds={"4 processors for 60 s": 1}, model=False)
    other: Any = SimpleNamespace(kinds={"2 processors for 60 s": 1}, model=False)
    (check,) = _generality({"one": facts, "other": facts})
    assert (check.verdict, "100% of their jobs" in check.found) == ("fail", True)
    (check,) = _generality({"one": facts, "other": other})
    assert check.verdict == "ok"
