"""What must hold for every behaviour of users, shipped or nested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from batsched_py.users import USERS
from batsched_py.workload.model import Workload
from tests.feedback import Arbitrary, Record, records, replay, rows, workload_of
from tests.processes import call_here, call_one_after_another, serving
from tests.users.behaviours import NAMES, POPULATIONS, behaviour, options_of

LOGS = records(sizes=st.integers(1, 3), waits=st.integers(0, 20))

#: Too small for some of the jobs.
HOSTS = 2

#: Each of these is tried with every behaviour.
few = settings(max_examples=settings().max_examples // 3)


def given_up(jobs_csv: str) -> int:
    """How many jobs were never submitted, as their users have said."""
    return sum(map(int, re.findall(r"abandoned=(\d+)", jobs_csv)))


@pytest.mark.parametrize("name", NAMES)
@few
@given(log=LOGS, delay=st.sampled_from([0.0, 1.5]))
def test_in_process_and_by_messages_users_do_the_same(name: str, log: list[Record], delay: float) -> None:
    """While a scheduler kills and rejects, and some jobs are too wide for the machine."""
    by_itself, wired, acknowledged = (
        replay(
            behaviour(name).users(workload_of(log)),
            HOSTS,
            Arbitrary(),
            wired=wired,
            acknowledge=acknowledge,
            delay=delay,
        )
        for wired, acknowledge in ((False, False), (True, False), (True, True))
    )
    assert by_itself == wired == acknowledged


@pytest.mark.parametrize("name", [name for name in NAMES if name not in POPULATIONS])
@few
@given(log=LOGS)
def test_every_job_is_submitted_once_unless_it_is_given_up(name: str, log: list[Record]) -> None:
    jobs_csv = replay(behaviour(name).users(workload_of(log)), HOSTS, Arbitrary())
    submitted = rows(jobs_csv)
    assert set(submitted) <= {str(number) for number in range(1, len(log) + 1)}
    assert len(submitted) + given_up(jobs_csv) == len(log)
    if "patience" not in name:
        assert not given_up(jobs_csv)


@pytest.mark.parametrize("name", POPULATIONS)
@few
@given(log=LOGS, seed=st.integers(0, 3))
def test_a_population_submits_each_of_its_jobs_at_most_once(name: str, log: list[Record], seed: int) -> None:
    """``rows`` fails when a job is there twice."""
    weeks = {"weeks": "2"} if "weeks" in USERS.options(name) else {}
    users = behaviour(name, seed=str(seed), **weeks).users(workload_of(log))
    rows(replay(users, HOSTS, Arbitrary()))


def _actors(name: str, log: Path) -> list[str | Path]:
    """What the commands are told of EASY, and of users who behave so."""
    options = [part for key, value in options_of(name).items() for part in ("-u", f"{key}={value}")]
    return ["-s", "easy", "--users", name, *options, "-w", log]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with the results of every behaviour, each of a process with a hash seed of its own."""
    folders = []
    for seed in ("1", "4242"):
        folder = tmp_path_factory.mktemp(f"seed{seed}")
        log = _small_log(folder)
        runs = [["run", *_actors(name, log), "-e", folder / name] for name in NAMES]
        call_one_after_another(runs, PYTHONHASHSEED=seed)
        folders.append(folder)
    return folders


@pytest.mark.parametrize("name", NAMES)
def test_results_do_not_depend_on_the_hash_seed(name: str, written: list[Path]) -> None:
    one, other = ((folder / f"{name}_jobs.csv").read_bytes() for folder in written)
    assert one == other


def _small_log(folder: Path) -> Path:
    """A log of 24 jobs by 3 users."""
    path = folder / "small.swf"
    lines = ["; MaxProcs: 4"] + [
        f"{n} {2 * n} {n % 4} {1 + 7 * n % 11} {1 + n % 4} -1 -1 {1 + n % 4} 60 -1 1 {n % 3} 1 1 1 1 -1 -1"
        for n in range(1, 25)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", NAMES)
def test_over_zeromq_users_do_the_same_as_in_one_process(name: str, tmp_path: Path) -> None:
    actors = _actors(name, _small_log(tmp_path))
    assert call_here(["run", *actors, "--hosts", "4", "-e", tmp_path / "one"])[0] == 0
    with serving(*actors) as service:
        batsim = ["batsim", "--hosts", "4", "--enable-dynamic-jobs", "--enable-profile-reuse"]
        code, _, err = call_here([*batsim, "--socket-endpoint", service.endpoint, "-e", tmp_path / "two"])
    assert (code, err) == (0, "")
    assert (tmp_path / "one_jobs.csv").read_bytes() == (tmp_path / "two_jobs.csv").read_bytes()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "site-level"])
def test_jobs_without_a_user_are_left_out_with_a_warning_or_kept(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    workload = workload_of([Record(1, 0, 5), Record(1, 1, 5), Record(2, 40, 5)])
    workload.jobs = [workload.jobs[0], replace(workload.jobs[1], extra={}), workload.jobs[2]]
    if "nameless" not in USERS.options(name):
        assert len(_submitted(name, workload)) == 3
        return
    lost = _submitted(name, workload)
    assert [record.getMessage() for record in caplog.records] == [
        "w0: left out because they name no user: 1 of 3 jobs (nameless=rigid keeps them)"
    ]
    kept = _submitted(name, workload, nameless="rigid")
    assert "2" not in lost or name.startswith("resample")
    assert len(kept) == len(lost) + 1 or name.startswith("resample")


def _submitted(name: str, workload: Workload, **options: str) -> set[str]:
    users = USERS.create(
        name, {"sessions": "arrival:0.1"} | options if "sessions" in USERS.options(name) else options
    )
    return set(rows(replay(users.users(workload), hosts=4)))
