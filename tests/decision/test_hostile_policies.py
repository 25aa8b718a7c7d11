"""Policies that do what they should not: each ends in one line that names it, and in no results."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py import native
from batsched_py.campaign.executors import execute
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.store import planned_campaign
from batsched_py.cli.main import batsched_py

needs_native = pytest.mark.skipif(native.library is None, reason="the native engine is not in use")

WORKLOAD = """{"nb_res": 2, "profiles": {"p": {"type": "delay", "delay": 10}}, "jobs": [
  {"id": 1, "subtime": 0, "res": 1, "walltime": 20, "profile": "p"},
  {"id": 2, "subtime": 0, "res": 2, "walltime": 20, "profile": "p"}]}"""

HEAD = """from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import Scheduler
class Policy(Scheduler):
    name = "policy"
    def schedule(self, cluster):
        for job in cluster.queue:
            if cluster.fits(job): cluster.start(job)
"""

#: What a policy does besides, what is said of it, and the line that is blamed.
FAULTS: dict[str, tuple[str, str]] = {
    "leaves": (
        "    def begin(self, cluster):\n        raise SystemExit(0)\n",
        "scheduler 'policy' failed at time 0: SystemExit: 0 (FILE:10)",
    ),
    "exits": (
        "    def begin(self, cluster):\n        import sys; sys.exit('bye')\n",
        "scheduler 'policy' failed at time 0: SystemExit: bye (FILE:10)",
    ),
    "exits while it decides": (
        "    def schedule(self, cluster):\n        import sys; sys.exit(0)\n",
        "scheduler 'policy' failed at time 0: SystemExit: 0 (FILE:10)",
    ),
    "exits as a listener": (
        "    def begin(self, cluster):\n        cluster.on_end(lambda job: exit(0))\n",
        "scheduler 'policy' failed at time 10: SystemExit: 0 (FILE:10)",
    ),
    "listens with a wrong signature": (
        "    def begin(self, cluster):\n        cluster.on_end(lambda: None)\n",
        "scheduler 'policy' failed at time 10: TypeError: Policy.begin.<locals>.<lambda>() takes 0 "
        "positional arguments but 1 was given (FILE:10)",
    ),
    "gives a job more time": (
        "    def schedule(self, cluster):\n"
        "        for job in cluster.fitting(): cluster.start(job).expected_end += 60\n",
        "scheduler 'policy' failed at time 0: AttributeError: immutable type: 'RunningJob' (FILE:10)",
    ),
    "calls at nan": (
        "    def begin(self, cluster):\n        cluster.call_at(float('nan'))\n",
        "scheduler 'policy' broke a rule at time 0: CallMeLater: a call at nan will never come (FILE:10)",
    ),
    "calls at infinity": (
        "    def begin(self, cluster):\n        cluster.decide(ev.CallMeLater(float('inf')))\n",
        "scheduler 'policy' broke a rule at time 0: CallMeLater: a call at inf will never come (FILE:10)",
    ),
    "calls at a text": (
        "    def begin(self, cluster):\n        cluster.call_at('soon')\n",
        "scheduler 'policy' failed at time 0: ValueError: could not convert string to float: 'soon' "
        "(FILE:10)",
    ),
    "expects nan": (
        "    def estimate(self, job):\n        return float('nan')\n",
        "scheduler 'policy' expects job w0!1 to run for nan seconds",
    ),
    "expects with a mistake": (
        "    def estimate(self, job):\n        return job.nothing\n",
        "scheduler 'policy' failed at time 0: AttributeError: 'Job' object has no attribute 'nothing' "
        "(FILE:10)",
    ),
    "changes its mind to nan": (
        "    def begin(self, cluster):\n        cluster.on_end(lambda job: cluster.expect(job.job, 1))\n"
        "    def schedule(self, cluster):\n"
        "        for job in cluster.queue:\n            cluster.expect(job, float('nan'))\n",
        "scheduler 'policy' broke a rule at time 0: expect w0!1: nan is no run time (FILE:13)",
    ),
    "listens with a mistake": (
        "    def begin(self, cluster):\n        cluster.on_end(lambda job: 1 / 0)\n",
        "scheduler 'policy' failed at time 10: ZeroDivisionError: division by zero (FILE:10)",
    ),
    "listens to starts with a mistake": (
        "    def begin(self, cluster):\n        cluster.on_start(lambda job: 1 / 0)\n"
        "    def schedule(self, cluster):\n"
        "        for job in cluster.fitting():\n            cluster.start(job)\n",
        "scheduler 'policy' failed at time 0: ZeroDivisionError: division by zero (FILE:10)",
    ),
    "orders with a wrong signature": (
        "    def begin(self, cluster):\n        cluster.order_queue(lambda jobs: jobs.size)\n",
        "scheduler 'policy' failed at time 0: TypeError: Policy.begin.<locals>.<lambda>() takes 1 positional "
        "argument but 2 were given (FILE:10)",
    ),
    "backfills with a wrong signature": (
        "    def schedule(self, cluster):\n"
        "        def small(size):\n            return size < 3\n"
        "        for job in cluster.fitting(small):\n            cluster.start(job)\n",
        "scheduler 'policy' failed at time 0: TypeError: Policy.schedule.<locals>.small() takes 1 positional "
        "argument but 2 were given (FILE:10)",
    ),
}


def invoke(policy: Path, folder: Path, *arguments: str) -> Result:
    workload = folder / "w.json"
    workload.write_text(WORKLOAD)
    options = ["run", "-w", workload, "-s", f"{policy}:Policy", "-e", folder / "out", *arguments]
    return CliRunner().invoke(batsched_py, list(map(str, options)))


@pytest.mark.parametrize(
    ("engine", "delay"),
    [pytest.param("native", "0", marks=needs_native), ("python", "0"), ("python", "0.5")],
    ids=["native", "0", "0.5"],
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_policy_is_one_line_that_names_it(
    fault: str, engine: str, delay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By both engines, and by messages, which a delay makes simulator and policy exchange."""
    monkeypatch.setattr(native, "library", native.library if engine == "native" else None)
    text, error = FAULTS[fault]
    policy = tmp_path / "policy.py"
    policy.write_text(HEAD + text)
    result = invoke(policy, tmp_path, "--scheduling-delay", delay)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    said = result.stderr.removeprefix("batsched-py: error: ").strip()
    if delay == "0":
        assert said == error.replace("FILE", str(policy))
    else:
        assert said.startswith("scheduler 'policy' ")
    assert not list(tmp_path.glob("*.csv"))


NUMBERS = {
    "int": "20",
    "bool": "20 * True",
    "numpy": "__import__('numpy').float32(20)",
    "numpy int": "__import__('numpy').int64(20)",
    "fraction": "__import__('fractions').Fraction(40, 2)",
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("how", ["cluster.call_at({})", "cluster.decide(ev.CallMeLater({}))"])
def test_any_kind_of_number_is_a_time(number: str, how: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.py"
    call = how.format(NUMBERS[number])
    policy.write_text(HEAD + f"    def begin(self, cluster):\n        {call}\n")
    result = invoke(policy, tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    "body", ["while True: pass", "while True:\n            try: 1 / 0\n            except Exception: pass"]
)
def test_a_policy_that_never_comes_back_is_stopped_by_the_time_limit(body: str, tmp_path: Path) -> None:
    policy, plan = tmp_path / "policy.py", tmp_path / "plan.toml"
    policy.write_text(HEAD + f"    def begin(self, cluster):\n        {body}\n")
    (tmp_path / "w.json").write_text(WORKLOAD)
    plan.write_text('[logs]\nw = { file = "w.json" }\n[schedulers]\nx = { name = "policy.py:Policy" }\n')
    campaign = planned_campaign(read_plan(plan), tmp_path / "results", time_limit=0.5)
    failure = execute(campaign.wanted.runs[0]).error
    assert failure is not None
    assert failure.startswith(
        f"not finished after 0.5 s, the time limit; scheduler '{policy}:Policy' ({policy}:1"
    )


def test_a_user_whose_time_is_none_is_named(tmp_path: Path) -> None:
    users = tmp_path / "users.py"
    users.write_text(
        "from batsched_py.users import Behaviour, User\n"
        "class Lost(User):\n"
        "    name = 'lost'\n"
        "    def next_time(self): return float('nan')\n"
        "    def submit(self, now): return []\n"
        "    def job_ended(self, job, state, now): pass\n"
        "class Users(Behaviour):\n"
        "    name = 'users'\n"
        "    def users(self, workload): return [Lost()]\n"
    )
    (tmp_path / "w.json").write_text(WORKLOAD)
    arguments = ["run", "-w", tmp_path / "w.json", "-s", "fcfs", "--users", f"{users}:Users"]
    result = CliRunner().invoke(batsched_py, [*map(str, arguments), "-e", str(tmp_path / "out")])
    assert (result.exit_code, result.stderr) == (
        1,
        "batsched-py: error: user lost wants to submit at time nan, which never comes\n",
    )
