from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError

WritePlan = Callable[[str], Path]


def names(file: Path) -> list[str]:
    return [run.name for run in read_plan(file).runs]


def test_axes_are_crossed_in_the_order_of_the_file(folder: Path) -> None:
    assert names(folder / "plan.toml") == [
        "small_full_fcfs",
        "small_full_easy",
        "small_half_fcfs",
        "small_half_easy",
    ]


def test_a_plan_without_platforms_takes_the_machine_of_each_log(write_plan: WritePlan) -> None:
    file = write_plan('[logs]\nsmall = {file = "small.swf"}\n[schedulers]\neasy = {}\n')
    (run,) = read_plan(file).runs
    assert (run.name, run.experiment.hosts) == ("small_recorded_easy", None)


def test_users_are_an_axis(write_plan: WritePlan) -> None:
    file = write_plan(
        """
        [logs]
        small = { file = "small.swf" }
        [schedulers]
        easy = {}
        [users]
        rigid = {}
        a0 = { name = "think-time", options = { sessions = "arrival:0" } }
        """
    )
    rigid, a0 = read_plan(file).runs
    assert (rigid.name, rigid.experiment.users) == ("small_recorded_easy_rigid", "rigid")
    assert (a0.name, a0.axes["users"]) == ("small_recorded_easy_a0", "a0")
    assert (a0.experiment.users, a0.experiment.user_options) == ("think-time", {"sessions": "arrival:0"})


def test_a_run_is_repeated_unless_it_sets_its_seed(write_plan: WritePlan) -> None:
    file = write_plan(
        """
        repetitions = 2
        [logs]
        small = { file = "small.swf" }
        [schedulers]
        mixed = { name = "policies.py:Shuffled" }
        fixed = { name = "policies.py:Shuffled", options = { seed = 7 } }
        """
    )
    plan = read_plan(file)
    assert {run.name: run.experiment.scheduler_options for run in plan.runs} == {
        "small_recorded_mixed_seed1": {"seed": "1"},
        "small_recorded_mixed_seed2": {"seed": "2"},
        "small_recorded_fixed": {"seed": "7"},
    }


def test_exclusions_leave_out_what_matches_all_they_say(folder: Path, write_plan: WritePlan) -> None:
    text = (folder / "plan.toml").read_text()
    file = write_plan(text + '[[exclude]]\nscheduler = "fcfs"\nplatform = ["half"]\n')
    assert names(file) == ["small_full_fcfs", "small_full_easy", "small_half_easy"]


def test_a_log_is_looked_for_where_the_user_says(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("logs")
    (folder / "small.swf").rename(elsewhere / "small.swf")
    plan = read_plan(folder / "plan.toml", [elsewhere])
    assert plan.runs[0].experiment.workload == str(elsewhere / "small.swf")


def test_a_log_that_can_be_had_is_missing_and_no_mistake(folder: Path, write_plan: WritePlan) -> None:
    file = write_plan('[logs]\nx = {file = "x.swf", url = "http://a/x.swf"}\n[schedulers]\neasy = {}\n')
    (log,) = read_plan(file).missing
    assert (log.path, log.url) == (folder / "x.swf", "http://a/x.swf")


def test_a_log_with_the_right_checksum_is_taken(folder: Path, write_plan: WritePlan) -> None:
    digest = hashlib.sha256((folder / "small.swf").read_bytes()).hexdigest()
    file = write_plan(f'[logs]\nx = {{file = "small.swf", sha256 = "{digest}"}}\n[schedulers]\neasy = {{}}\n')
    assert names(file) == ["x_recorded_easy"]


HEAD = '[logs]\nsmall = { file = "small.swf" }\n'

MISTAKES = {
    "not TOML": (
        "[logs\n",
        "is not TOML: Expected ']' at the end of a table declaration (at line 1, column 6)",
    ),
    "no logs": ("[schedulers]\neasy = {}\n", "Object missing required field `logs`"),
    "an empty table": (HEAD + "[schedulers]\n", ":3: schedulers: is empty; a plan needs at least one"),
    "an unknown key": (
        "seed = 3\n" + HEAD + "[schedulers]\neasy = {}\n",
        ":1: seed: there is no such key; known are logs, schedulers, platforms, users, exclude, ",
    ),
    "an unknown key of a log": (
        '[logs]\nsmall = { file = "small.swf", factor = 2 }\n[schedulers]\neasy = {}\n',
        ":2: logs.small.factor: there is no such key; known are file, walltime, walltime_factor, url, sha256",
    ),
    "a wrong type": (
        HEAD + '[platforms.big]\nspeed = 2\nhosts = "many"\n[schedulers]\neasy = {}\n',
        ":5: platforms.big.hosts: Expected `int | null`, got `str`",
    ),
    "a wrong choice": (
        '[logs]\nsmall = { file = "small.swf", walltime = "min" }\n[schedulers]\neasy = {}\n',
        ":2: logs.small.walltime: Invalid enum value 'min'",
    ),
    "no such log": (
        '[logs]\nx = { file = "nowhere.swf" }\n[schedulers]\neasy = {}\n',
        ":2: logs.x.file: there is no file ",
    ),
    "a wrong checksum": (
        '[logs]\nx = { file = "small.swf", sha256 = "00" }\n[schedulers]\neasy = {}\n',
        ":2: logs.x.sha256: ",
    ),
    "a name that is no path": (
        HEAD + '[schedulers]\n"a/b" = { name = "easy" }\n',
        ":4: schedulers.a/b: a name is made of letters, digits and . + -",
    ),
    "an unknown scheduler": (
        HEAD + "[schedulers]\neasy = {}\nmagic = {}\n",
        ":5: schedulers.magic: there is no scheduler 'magic'; known are ",
    ),
    "an unknown option": (
        HEAD + '[schedulers.mixed]\nname = "policies.py:Shuffled"\n[schedulers.mixed.options]\nsead = 3\n',
        ":6: schedulers.mixed.options.sead: ",
    ),
    "an option of the wrong type": (
        HEAD + '[schedulers]\nmixed = { name = "policies.py:Shuffled", options = { seed = "x" } }\n',
        ":4: schedulers.mixed.options.seed: ",
    ),
    "an unknown behaviour": (
        HEAD + "[schedulers]\neasy = {}\n[users]\nlazy = {}\n",
        ":6: users.lazy: there is no user behaviour 'lazy'; known are ",
    ),
    "a platform that is a file and a number": (
        HEAD + '[platforms]\nx = { file = "x.xml", hosts = 4 }\n[schedulers]\neasy = {}\n',
        ":4: platforms.x.hosts: a platform has either a file or a number of hosts",
    ),
    "a speed for nothing": (
        HEAD + "[platforms]\nx = { speed = 2.0 }\n[schedulers]\neasy = {}\n",
        ":4: platforms.x.speed: is for a number of hosts",
    ),
    "no hosts": (
        HEAD + "[platforms]\nx = { hosts = 0 }\n[schedulers]\neasy = {}\n",
        ":4: platforms.x: a platform needs at least 1 host, not 0",
    ),
    "no platform file": (
        HEAD + '[platforms]\nx = { file = "x.xml" }\n[schedulers]\neasy = {}\n',
        ":4: platforms.x: ",
    ),
    "seeds for nothing": (
        "seeds = [1, 2]\n" + HEAD + "[schedulers]\neasy = {}\n",
        ":1: seeds: no option `seed` is left open in this plan",
    ),
    "a seed twice": (
        "seeds = [1, 1]\n" + HEAD + '[schedulers]\nx = { name = "policies.py:Shuffled" }\n',
        ":1: seeds: a seed is given twice",
    ),
    "seeds and repetitions": (
        "seeds = [1]\nrepetitions = 2\n" + HEAD + '[schedulers]\nx = { name = "policies.py:Shuffled" }\n',
        ":2: repetitions: seeds are given too",
    ),
    "no repetition": (
        "repetitions = 0\n" + HEAD + '[schedulers]\nx = { name = "policies.py:Shuffled" }\n',
        ":1: repetitions: must be at least 1",
    ),
    "an exclusion of a stranger": (
        HEAD + '[schedulers]\neasy = {}\n[[exclude]]\nscheduler = "fcfs"\n',
        ":6: exclude.0.scheduler: no run has the scheduler 'fcfs'",
    ),
    "an exclusion of nothing": (
        HEAD + "[platforms]\na = {hosts = 4}\n[schedulers]\neasy = {}\nfcfs = {}\n"
        '[[exclude]]\nscheduler = "fcfs"\n[[exclude]]\nlog = "small"\nscheduler = "easy"\nplatform = "b"\n',
        ":13: exclude.1.platform: no run has the platform 'b'",
    ),
    "an exclusion of everything": (
        HEAD + '[schedulers]\neasy = {}\n[[exclude]]\nlog = "small"\n',
        ":5: exclude: excludes every run",
    ),
    "an unknown metric": (
        'metrics = ["makespan", "happiness"]\n' + HEAD + "[schedulers]\neasy = {}\n",
        ":1: metrics: there is no metric 'happiness'; known are nb_jobs, ",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_by_line_and_key(write_plan: WritePlan, mistake: str) -> None:
    text, message = MISTAKES[mistake]
    file = write_plan(text)
    with pytest.raises(InputError) as raised:
        read_plan(file)
    assert str(raised.value).startswith(str(file))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.toml: cannot be read: No such file or directory"):
        read_plan(tmp_path / "no.toml")
