from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.events import Settings

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
    assert (run.name, run.experiment.scenario.machine) == ("small_recorded_easy", Machine())


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
    assert (rigid.name, rigid.experiment.actors.users) == ("small_recorded_easy_rigid", Choice("rigid"))
    assert (a0.name, a0.axes["users"]) == ("small_recorded_easy_a0", "a0")
    assert a0.experiment.actors.users == Choice("think-time", {"sessions": "arrival:0"})


SESSIONS = """
[logs]
small = {{ file = "small.swf" }}
[schedulers]
easy = {{}}
[users]
{}
"""


def test_rules_for_sessions_are_an_axis(write_plan: WritePlan) -> None:
    rules = 'sessions = ["arrival:20", "max:5"]'
    file = write_plan(SESSIONS.format(f"rigid = {{}}\nthink = {{ name = 'think-time', {rules} }}"))
    assert {run.name: run.experiment.actors.users for run in read_plan(file).runs} == {
        "small_recorded_easy_rigid": Choice("rigid"),
        "small_recorded_easy_think-arrival20": Choice("think-time", {"sessions": "arrival:20"}),
        "small_recorded_easy_think-max5": Choice("think-time", {"sessions": "max:5"}),
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("a = {name = 'rigid', sessions = ['max:5']}", "rigid users have no sessions"),
        ("a = {name = 'think-time', sessions = ['max:5', 'max:5']}", "there are users 'a-max5' already"),
        ("a = {name = 'think-time', sessions = ['never:5']}", "never"),
        ("a = {name = 'think-time', sessions = []}", "length >= 1"),
        ("a = {name = 'think-time', sessions = ['max:5'], options = {sessions = 'max:6'}}", "leave out one"),
    ],
)
def test_rules_for_sessions_that_cannot_be(write_plan: WritePlan, entry: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"plan.toml:7: users\.a\..*{message}"):
        read_plan(write_plan(SESSIONS.format(entry)))


def test_files_of_users_are_looked_for_beside_the_plan(folder: Path, write_plan: WritePlan) -> None:
    (folder / "signal.csv").write_text("0,1\n")
    (folder / "calm.py").write_text(
        "from batsched_py.users import EachUser\n"
        "class Calm(EachUser):\n"
        "    def named_users(self, workload):\n"
        "        return self.inner.users(workload)\n"
    )
    file = write_plan(
        """
        [logs]
        small = { file = "small.swf" }
        [schedulers]
        easy = {}
        [users]
        calm = { name = "calm.py:Calm(sober)", options = { signal_file = "signal.csv" } }
        """
    )
    (run,) = read_plan(file).runs
    users = run.experiment.actors.users
    assert users == Choice(f"{folder / 'calm.py'}:Calm(sober)", {"signal_file": str(folder / "signal.csv")})


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
    assert {run.name: run.experiment.actors.scheduler.options for run in plan.runs} == {
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
    assert plan.runs[0].experiment.scenario.workloads.files == (str(elsewhere / "small.swf"),)


def test_a_log_that_can_be_had_is_missing_and_no_mistake(folder: Path, write_plan: WritePlan) -> None:
    file = write_plan('[logs]\nx = {file = "x.swf", url = "http://a/x.swf"}\n[schedulers]\neasy = {}\n')
    (log,) = read_plan(file).missing
    assert (log.path, log.url) == (folder / "x.swf", "http://a/x.swf")


def test_a_log_with_the_right_checksum_is_taken(folder: Path, write_plan: WritePlan) -> None:
    digest = hashlib.sha256((folder / "small.swf").read_bytes()).hexdigest()
    file = write_plan(f'[logs]\nx = {{file = "small.swf", sha256 = "{digest}"}}\n[schedulers]\neasy = {{}}\n')
    assert names(file) == ["x_recorded_easy"]


OUTAGE = """{"timestamp": 10, "type": "machine_unavailable", "resources": "0-3"}
{"timestamp": 20, "type": "meeting"}
"""


def test_a_plan_can_say_whatever_run_can(root: Path, folder: Path, write_plan: WritePlan) -> None:
    (folder / "outage.txt").write_text(OUTAGE)
    (folder / "power.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    file = write_plan(
        """
        [logs]
        twice = { file = ["small.swf", "small.swf"], walltime = "requested", walltime_factor = 3.0 }
        [platforms.power]
        file = "power.xml"
        master_host = "node00"
        roles = ["node01,node02:storage", "master_host:compute_node"]
        mmax = 8
        mmax_workload = true
        energy = true
        events = ["outage.txt"]
        forward_unknown_events = true
        compute_sharing = true
        storage_sharing = false
        ignore_communication = true
        machine_states = false
        [schedulers.slow]
        name = "easy"
        options = { backfill = "shortest" }
        delay = 2.5
        config = "be quick"
        dynamic_jobs = true
        acknowledge_dynamic_jobs = true
        profile_reuse = true
        forward_profiles = true
        [users]
        rigid = {}
        """
    )
    log, events, power = (str(folder / name) for name in ("small.swf", "outage.txt", "power.xml"))
    assert [run.experiment for run in read_plan(file).runs] == [
        Experiment(
            scenario=Scenario(
                workloads=Workloads(files=(log, log), walltime="requested", walltime_factor=3.0),
                machine=Machine(
                    file=power,
                    master_host="node00",
                    roles=("node01,node02:storage", "master_host:compute_node"),
                    mmax=8,
                    mmax_workload=True,
                ),
                settings=Settings(
                    dynamic_jobs=True,
                    acknowledge_dynamic_jobs=True,
                    profile_reuse=True,
                    forward_profiles=True,
                    forward_unknown_events=True,
                    compute_sharing=True,
                    storage_sharing=False,
                    scheduler_config="be quick",
                ),
                energy=True,
                events=(events,),
                ignore_communication=True,
                machine_states=False,
            ),
            actors=Actors(
                scheduler=Choice("easy", {"backfill": "shortest"}),
                users=Choice("rigid"),
                scheduling_delay=2.5,
            ),
        )
    ]


def test_a_single_event_file_needs_no_list(folder: Path, write_plan: WritePlan) -> None:
    (folder / "outage.txt").write_text(OUTAGE.splitlines()[0])
    file = write_plan(HEAD + '[platforms]\nx = { events = "outage.txt" }\n[schedulers]\neasy = {}\n')
    (run,) = read_plan(file).runs
    assert run.experiment.scenario.events == (str(folder / "outage.txt"),)


def test_schedulers_of_pybatsim_are_schedulers(folder: Path, write_plan: WritePlan) -> None:
    pytest.importorskip("batsim")
    (folder / "theirs.py").write_text(
        "from batsim.batsim import BatsimScheduler\n\n\nclass Theirs(BatsimScheduler):\n    pass\n"
    )
    file = write_plan(
        HEAD
        + '[schedulers]\nfiller = { name = "pybatsim:easyBackfill" }\n'
        + 'theirs = { name = "pybatsim:theirs.py", options = { depth = 3 } }\n'
    )
    assert [run.experiment.actors.scheduler for run in read_plan(file).runs] == [
        Choice("pybatsim:easyBackfill"),
        Choice(f"pybatsim:{folder / 'theirs.py'}", {"depth": "3"}),
    ]


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
        ":1: seed: there is no such key; known are logs, schedulers, platforms, allocators, users, exclude, ",
    ),
    "an unknown key of a log": (
        '[logs]\nsmall = { file = "small.swf", factor = 2 }\n[schedulers]\neasy = {}\n',
        ":2: logs.small.factor: there is no such key; known are file, url, sha256, kind, input_options, "
        "attributes, walltime, walltime_factor, cancelled",
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
    "several logs with one checksum": (
        '[logs]\nx = { file = ["small.swf", "small.swf"], sha256 = "00" }\n[schedulers]\neasy = {}\n',
        ":2: logs.x.sha256: is for a single file",
    ),
    "a log without a file": (
        "[logs]\nx = { file = [] }\n[schedulers]\neasy = {}\n",
        ":2: logs.x.file: a log needs at least one file",
    ),
    "energy of equal hosts": (
        HEAD + "[platforms]\nx = { hosts = 4, energy = true }\n[schedulers]\neasy = {}\n",
        ":4: platforms.x.energy: needs a platform file, which says what each host draws",
    ),
    "energy that nobody knows": (
        HEAD + '[platforms.x]\nfile = "flat.xml"\nenergy = true\n[schedulers]\neasy = {}\n',
        ":5: platforms.x.energy: host 'node0' does not say what power it draws",
    ),
    "no event file": (
        HEAD + '[platforms]\nx = { events = "no.txt" }\n[schedulers]\neasy = {}\n',
        "no.txt: cannot read this event file",
    ),
    "an unknown event": (
        HEAD + '[platforms.x]\nhosts = 4\nevents = "outage.txt"\n[schedulers]\neasy = {}\n',
        ":5: platforms.x.events: ",
    ),
    "a role that is none": (
        HEAD + '[platforms]\nx = { hosts = 4, roles = ["node0"] }\n[schedulers]\neasy = {}\n',
        ":4: platforms.x: role 'node0' is not of the form HOST[,HOST...]:ROLE",
    ),
    "a negative delay": (
        HEAD + "[schedulers]\nslow = { name = 'easy', delay = -1 }\n",
        ":4: schedulers.slow.delay: Expected `float` >= 0",
    ),
    "profiles kept for nothing": (
        HEAD + "[schedulers]\neasy = { profile_reuse = true }\n",
        ":4: schedulers.easy.profile_reuse: makes sense with dynamic_jobs only",
    ),
    "a scheduler of PyBatsim with users": (
        HEAD + '[schedulers]\nx = { name = "pybatsim:easyBackfill" }\n[users]\nrigid = {}\n',
        ":4: schedulers.x: a scheduler of PyBatsim decides without [users]",
    ),
    "a slow scheduler of PyBatsim": (
        HEAD + '[schedulers]\nx = { name = "pybatsim:easyBackfill", delay = 1 }\n',
        ":4: schedulers.x: a scheduler of PyBatsim decides without users and without a scheduling delay",
    ),
    "no scheduler of PyBatsim": (
        HEAD + '[schedulers]\nx = { name = "pybatsim:nowhere.py" }\n',
        ":4: schedulers.x: scheduler 'pybatsim:",
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
    "a metric twice": (
        'metrics = ["makespan", "makespan"]\n' + HEAD + "[schedulers]\neasy = {}\n",
        ":1: metrics: the metric 'makespan' is given twice",
    ),
    "a metric in a file that is not there": (
        'metrics = ["own.py:P95"]\n' + HEAD + "[schedulers]\neasy = {}\n",
        "own.py",
    ),
    "a scheduler as a metric": (
        'metrics = ["policies.py:Idle"]\n' + HEAD + "[schedulers]\neasy = {}\n",
        "defines no metric 'Idle' (it defines none)",
    ),
    "a baseline that is no scheduler of the plan": (
        'baseline = "fcfs"\n' + HEAD + "[schedulers]\neasy = {}\n",
        ":1: baseline: there is no scheduler 'fcfs' in this plan",
    ),
    "a baseline that is no platform of the plan": (
        'baseline = "platform=now"\n' + HEAD + "[schedulers]\neasy = {}\n",
        ":1: baseline: there is no platform 'now' in this plan",
    ),
    "a baseline on no axis": (
        'baseline = "colour=red"\n' + HEAD + "[schedulers]\neasy = {}\n",
        ":1: baseline: there is no axis 'colour'; there are log, platform, scheduler, allocator, users, load",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_by_line_and_key(
    root: Path, folder: Path, write_plan: WritePlan, mistake: str
) -> None:
    text, message = MISTAKES[mistake]
    if "PyBatsim" in mistake:
        pytest.importorskip("batsim")
    (folder / "outage.txt").write_text(OUTAGE)
    (folder / "flat.xml").write_bytes((root / "platforms" / "cluster64.xml").read_bytes())
    file = write_plan(text)
    with pytest.raises(InputError) as raised:
        read_plan(file)
    assert str(raised.value).startswith(str(file))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.toml: cannot be read: No such file or directory"):
        read_plan(tmp_path / "no.toml")
