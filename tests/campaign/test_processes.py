"""Workers that are killed, and campaigns that are."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from batsched_py.campaign import executors
from batsched_py.campaign.executors import ATTEMPTS, Processes
from batsched_py.cli.main import batsched_py
from tests.campaigns import conducted, kill, manifests, results, to_do, wait_until, workers
from tests.processes import PATIENCE, PROGRESS, ROOT, environment, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

RUNS = 6
PLAN = """
repetitions = 3

[logs]
small = { file = "small.swf" }

[platforms]
full = { hosts = 64 }

[schedulers]
slow = { name = "policies.py:Slow", options = { seconds = 0.8 } }
slower = { name = "policies.py:Slow", options = { seconds = 1.2 } }
"""

FATAL = """

class Fatal(Idle):
    def begin(self, cluster: Cluster) -> None:
        import os

        os.kill(os.getpid(), 9)
"""

DEAF = """

class Deaf(Shuffled):
    def begin(self, cluster: Cluster) -> None:
        from pathlib import Path

        super().begin(cluster)
        try:
            Path(__file__).with_name("begun").touch()
            time.sleep(600)
        except BaseException:
            pass
"""


def run(folder: Path, results: str, workers: int = 2) -> list[str]:
    return ["campaign", "run", str(folder / "plan.toml"), "-d", str(folder / results), "-j", str(workers)]


@pytest.fixture
def long_plan(folder: Path, write_plan: Callable[[str], Path]) -> Path:
    write_plan(PLAN)
    return folder


def test_a_killed_campaign_goes_on_as_if_nothing_had_happened(
    long_plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First a worker of it is killed, then the campaign; `make kills` does more of this."""
    chance = random.Random(20261116)
    killed = long_plan / "killed"
    with start(run(long_plan, "killed")) as campaign:
        wait_until(lambda: workers(campaign.pid), "there are workers")
        time.sleep(chance.uniform(0.0, 1.0))
        kill(chance.choice(workers(campaign.pid)))
        time.sleep(chance.uniform(0.0, 0.6))
        survivors = workers(campaign.pid)
        campaign.kill()
    wait_until(partial(all_gone, survivors), "the workers have followed their parent")
    seen = manifests(killed)
    assert len(seen) < RUNS, "the campaign was over before it was killed"
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    for folder in ("killed", "undisturbed"):
        conducted(long_plan, results=folder)
    assert seen.items() <= manifests(killed).items(), "a finished run was lost, changed or done again"
    assert results(killed) == results(long_plan / "undisturbed")
    assert len(manifests(killed)) == RUNS
    assert list((killed / "work").iterdir()) == []


def all_gone(pids: list[int]) -> bool:
    return not any(map(is_alive, pids))


def is_alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_run_whose_worker_always_dies_is_given_up_and_the_others_go_on(folder: Path) -> None:
    policies = folder / "policies.py"
    policies.write_text(policies.read_text() + FATAL)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text() + 'fatal = { name = "policies.py:Fatal" }\n')
    errors = {result.name: result.error for result in Processes(2).run(to_do(folder))}
    assert len(errors) == 6
    assert {name for name, error in errors.items() if error is not None} == {
        "small_full_fatal",
        "small_half_fatal",
    }
    assert errors["small_full_fatal"] == f"its process died {ATTEMPTS} times: killed by SIGKILL"


def test_ctrl_c_stops_the_workers_and_keeps_what_is_done(long_plan: Path) -> None:
    with start(run(long_plan, "results")) as campaign:
        wait_until(lambda: list((long_plan / "results" / "runs").glob("*")), "a run is finished")
        pids = workers(campaign.pid)
        campaign.send_signal(signal.SIGINT)
        _, err = campaign.communicate(timeout=PATIENCE)
    assert (campaign.returncode, PROGRESS.sub("", err)) == (130, "batsched-py: stopped by Ctrl-C\n")
    assert all_gone(pids)
    assert 1 <= len(manifests(long_plan / "results")) < RUNS
    assert list((long_plan / "results" / "work").iterdir()) == []


def test_a_worker_whose_policy_drops_the_request_to_stop_ends_after_its_run(folder: Path) -> None:
    policies = folder / "policies.py"
    policies.write_text(policies.read_text() + DEAF)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("fcfs = {}", 'fcfs = { name = "policies.py:Deaf" }'))
    deaf = to_do(folder)[0]
    worker = executors._Worker()
    worker.give(deaf, 1)
    wait_until((folder / "begun").exists, "the policy has begun")
    worker.stop()
    worker.join()
    assert worker.exit_reason() == "exit code 0"
    assert list(manifests(folder / "results")) == [deaf.name]


def test_two_campaigns_in_one_folder_do_not_mix(long_plan: Path) -> None:
    with start(run(long_plan, "results", workers=1)) as first:
        wait_until(lambda: workers(first.pid), "the first campaign has workers")
        second = CliRunner().invoke(batsched_py, run(long_plan, "results"))
        first.kill()
    assert second.exit_code == 1
    assert second.stderr.endswith("another campaign is running in this folder\n")


def test_workers_find_modules_where_their_parent_does(tmp_path: Path) -> None:
    """A file in the current folder that is called like a module of Python is not taken for it."""
    (tmp_path / "heapq.py").write_text("raise SystemExit('this is not the module you want')\n")
    (tmp_path / "plan.toml").write_text(
        f'[logs]\nsample = {{ file = "{ROOT / "workloads" / "sample.swf"}" }}\n'
        "[platforms]\nfull = { hosts = 64 }\n[schedulers]\nfcfs = {}\n"
    )
    command = "import sys; sys.path.pop(0); from batsched_py.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "campaign", "run", "plan.toml", "-d", "out"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, PROGRESS.sub("", done.stderr)) == (0, "")
