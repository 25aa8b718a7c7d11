"""The compiled core against the Python classes that are its specification: step by step, and as a whole."""

from __future__ import annotations

import gc
import gzip
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py import core
from batsched_py.cli.main import batsched_py
from batsched_py.core import fastest
from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import BatschedError, PolicyError, RuleBroken
from batsched_py.ledger.ledger import Ledger
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import Delay, Homogeneous, Profile
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.cluster import Said
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.memory_files import PREFIX, MemoryFiles
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import USERS
from batsched_py.users.base import Action, Remark, Submission, User, Withdrawal
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.feedback import Record, records, replay, workload_of
from tests.processes import PATIENCE, environment

compiled_only = pytest.mark.skipif(not core.compiled, reason="the compiled core is not in use")

HOSTS = 12


@contextmanager
def using(compiled: bool) -> Iterator[None]:
    """One of the cores, for a while."""
    before, core.compiled = core.compiled, compiled
    try:
        yield
    finally:
        core.compiled = before


def on_both(action: Callable[[], Any]) -> tuple[Any, Any]:
    """What an action gives with each core."""
    with using(False):
        pure = action()
    with using(True):
        return pure, action()


class Account:
    """A ledger and a policy's view, to which the same things can happen under both cores."""

    def __init__(self) -> None:
        begins = ev.SimulationBegins([Host(number, f"h{number}") for number in range(HOSTS)])
        self.ledger = fastest(Ledger)(begins)
        self.cluster = fastest(Cluster)(self.ledger, Said(), begins.hosts)
        self.seen: list[Any] = []

    def step(self, random: Random, jobs: list[Job]) -> None:
        """Something happens to the jobs; the state after it is noted, and what was said of it."""
        cluster, ledger = self.cluster, self.ledger
        cluster.now += random.randint(0, 3)
        job = jobs[random.randrange(len(jobs))]
        kind = random.randrange(12)
        try:
            if kind < 4:
                new = Job(
                    f"w0!{len(jobs)}", cluster.now, random.randint(1, HOSTS), random.randint(1, 30), "p"
                )
                jobs.append(new)
                ledger.submit(new)
            elif kind < 6:
                limit = random.randint(0, 30)
                only_new = random.random() < 0.5
                for fit in cluster.fitting(lambda size, estimate: estimate <= limit, None, only_new):
                    self.seen.append(fit.id)
                    if random.random() < 0.7:
                        cluster.start(fit)
            elif kind == 6:
                self.seen.append(str(cluster.start(job).hosts))
            elif kind == 7:
                chosen = HostSet.of(random.sample(range(HOSTS), job.size))
                self.seen.append(str(cluster.start(job, chosen).hosts))
            elif kind == 8:
                for running in list(ledger.running)[:2]:
                    ledger.release(running.job.id)
            elif kind == 9:
                self.seen.append(cluster.reservation(job))
                cluster.expect(job, float(random.randint(1, 40)))
            elif kind == 10:
                hosts = HostSet.of(random.sample(range(HOSTS), 2))
                (ledger.take_away if random.random() < 0.5 else ledger.give_back)(hosts)
                cluster.reject(job)
            else:
                ledger.settle()
        except (RuleBroken, KeyError) as error:
            self.seen.append(str(error))
        self.seen.append(self.state())

    def state(self) -> tuple[Any, ...]:
        """All that a policy can see."""
        cluster, queue = self.cluster, self.cluster.queue
        return (
            [(job.id, queue.estimate(job)) for job in queue],
            queue.head.id if queue else None,
            (
                len(queue),
                self.ledger.queue_book.nb_new,
                cluster.quiet,
                cluster.nb_free,
                str(cluster.free),
                str(cluster.available),
            ),
            [
                (job.job.id, str(job.hosts), job.start, job.expected_end, job.nb_hosts)
                for job in cluster.running
            ],
            [(end, number) for end, number, _ in self.ledger.running_book.by_end],
        )


@compiled_only
@settings(max_examples=150)
@given(seed=st.integers(0, 10**9))
def test_both_ledgers_do_the_same_step_by_step(seed: int) -> None:
    def steps() -> list[Any]:
        account, random = Account(), Random(seed)
        jobs = [Job("w0!0", 0.0, 2, 10.0, "p")]
        account.ledger.submit(jobs[0])
        for _ in range(random.choice((20, 60, 300))):
            account.step(random, jobs)
        return account.seen

    pure, compiled = on_both(steps)
    assert compiled == pure


class Erratic(Scheduler):
    """Starts, rejects, kills, notes and asks for calls as it likes."""

    name = "erratic"

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.heard: list[str] = []

    def begin(self, cluster: Cluster) -> None:
        cluster.on_end(lambda ended: self.heard.append(f"{ended.job.id} {ended.hosts} {ended.expected_end}"))

    def schedule(self, cluster: Cluster) -> None:
        random = self._random
        self.heard += [f"{cluster.now} {event}" for event in cluster.events]
        for job in list(cluster.queue):
            if random.random() < 0.05:
                cluster.reject(job)
        for running in list(cluster.running):
            if random.random() < 0.03:
                cluster.kill(running.job)
        if cluster.queue and random.random() < 0.2:
            cluster.decide(ev.SetJobMetadata(cluster.queue.head.id, f"note {random.random():.3f}"))
        for job in cluster.fitting():
            if random.random() < 0.8:
                cluster.start(job)
        if random.random() < 0.1 or cluster.queue:
            cluster.call_at(cluster.now + random.choice((1.0, 0.3, 7.25)))


def random_workload(random: Random) -> Workload:
    """Jobs at once, at whole and at odd times, some of which sleep or have no walltime."""
    grain = random.choice((1.0, 0.1, 1 / 3))
    profiles: dict[str, Profile] = {f"run_{n}": Homogeneous(n * grain * 1e9) for n in range(20)}
    profiles |= {"sleep": Delay(5), "fails": Homogeneous(2e9, return_code=3)}
    time = 0.0
    jobs = []
    for number in range(random.randint(1, 60)):
        time += grain * random.choice((0, 0, 1, 5))
        walltime = random.choice((float("inf"), 10.0, grain * 12))
        size = random.randint(1, HOSTS + 1)
        jobs.append(Job(f"w0!{number}", time, size, walltime, random.choice(list(profiles))))
    return Workload("w0", jobs, profiles)


@compiled_only
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_both_cores_carry_out_whatever_a_policy_decides(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("out")

    def outcome() -> tuple[list[str], list[bytes]]:
        random = Random(seed)
        workload = random_workload(random)
        outages: list[ev.Event] = [
            ev.HostsUnavailable(HostSet.of([0, 3]), time=4.0),
            ev.HostsAvailable(HostSet.of([0, 3]), time=9.5),
        ]
        policy = Erratic(seed)
        prefix = str(folder / f"{core.compiled}")
        batsim = Batsim(
            Setup(
                Platform.homogeneous(HOSTS, random.choice((1.0, 1.7))),
                [workload],
                events=[outages] if random.random() < 0.5 else [],
            ),
            fastest(Outputs)(prefix),
        )
        simulate(batsim, DecisionProcess(policy))
        return policy.heard, [Path(f"{prefix}_{name}.csv").read_bytes() for name in ("jobs", "schedule")]

    pure, compiled = on_both(outcome)
    assert compiled == pure


class ErraticUser(User):
    """Submits, withdraws, remarks and sleeps as it likes; notes what it hears."""

    def __init__(self, name: str, seed: int, jobs: list[Job], profiles: dict[str, Profile]) -> None:
        self.name = name
        self.heard: list[str] = []
        self._random = Random(seed)
        self._jobs = jobs
        self._profiles = profiles
        self._mine: list[str] = []
        self._next = self._random.choice((0.0, 1.0, 2.5))

    def next_time(self) -> float:
        return self._next

    def submit(self, now: float) -> list[Action]:
        random, actions = self._random, list[Action]()
        self.heard.append(f"{now}")
        for job in self._jobs[: random.randint(0, 3)]:
            note = random.choice(("", f"note {now}"))
            actions.append(Submission(job, self._profiles[job.profile], note, random.choice((0.0, now))))
        for job_id in [job_id for job_id in self._mine if random.random() < 0.1]:
            actions.append(random.choice((Withdrawal(job_id, "gone"), Remark(job_id, "still here"))))
        submitted = [action.job for action in actions if isinstance(action, Submission)]
        self._jobs = self._jobs[len(submitted) :]
        self._mine += [job.id for job in submitted]
        self._next = now + random.choice((0.25, 1.0, 1 / 3, 20.0)) if self._jobs else float("inf")
        return actions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self._mine.remove(job.id)
        self.heard.append(f"{job.id} {state} {now}")
        if self._jobs and self._random.random() < 0.5:
            self._next = now + self._random.choice((0.0, 0.5))


class Listener(ErraticUser):
    """One who also hears of starts."""

    def job_started(self, job: Job, now: float) -> None:
        self.heard.append(f"{job.id} starts {now}")


@compiled_only
@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_both_cores_do_whatever_users_do(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("out")

    def outcome() -> tuple[list[list[str]], list[bytes]]:
        random = Random(seed)
        workload = random_workload(random)
        profiles = dict(workload.profiles)
        kind = random.choice((ErraticUser, Listener))
        users = [kind(f"u{n}", seed + n, list(workload.jobs[n::3]), profiles) for n in range(3)]
        policy: Scheduler = Erratic(seed) if random.random() < 0.5 else SCHEDULERS.create("easy", {})
        prefix = str(folder / f"{core.compiled}")
        process = DecisionProcess(policy, users)
        reuse = random.random() < 0.8
        allowed = ev.Settings(dynamic_jobs=True, profile_reuse=reuse)
        batsim = Batsim(Setup(Platform.homogeneous(HOSTS), (), allowed), fastest(Outputs)(prefix))
        simulate(batsim, process)
        heard = [user.heard for user in users] + ([policy.heard] if isinstance(policy, Erratic) else [])
        return heard, [Path(f"{prefix}_{name}.csv").read_bytes() for name in ("jobs", "schedule")]

    pure, compiled = on_both(outcome)
    assert compiled == pure


class Troublemaker(ErraticUser):
    """Makes one mistake."""

    def __init__(self, mistake: str) -> None:
        job = Job("dyn!1", 0.0, 1, -5.0 if mistake == "walltime" else 10.0, "p")
        note = 'a "quote"' if mistake == "note" else "a note"
        super().__init__("u1", 1, [job], {"p": Homogeneous(1e9)})
        self._mistake = mistake
        self._submissions: list[Action] = [Submission(job, Homogeneous(1e9), note)]
        self._next = 3.0

    def next_time(self) -> float:
        match self._mistake:
            case "never":
                return float("nan")
            case "no time" if self._next == 4.0:
                return "soon"  # type: ignore[return-value]
        return self._next

    def submit(self, now: float) -> list[Action]:
        self._next = now if self._mistake == "idle" else 4.0
        match self._mistake:
            case "raises":
                raise ValueError("no idea")
            case "idle":
                return []
            case "another's":
                return [Withdrawal("dyn!7")]
        return self._submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        raise LookupError("what was that?")


@compiled_only
@pytest.mark.parametrize(
    "mistake", ["walltime", "note", "never", "no time", "raises", "idle", "another's", "twice", "deaf"]
)
def test_both_cores_say_the_same_about_a_users_mistake(mistake: str) -> None:
    def fail() -> str:
        user = Troublemaker(mistake)
        if mistake == "deaf":
            user._next, user.submit = 3.0, lambda now: _once(user)  # type: ignore[method-assign]
        allowed = ev.Settings(dynamic_jobs=True, profile_reuse=True)
        batsim = Batsim(Setup(Platform.homogeneous(2), (), allowed))
        with pytest.raises(PolicyError) as raised:
            simulate(batsim, DecisionProcess(SCHEDULERS.create("easy", {}), [user]))
        return str(raised.value)

    def _once(user: Troublemaker) -> list[Action]:
        user._next = float("inf")
        return user._submissions

    pure, compiled = on_both(fail)
    assert compiled == pure


TIMES = st.floats(0, 1e13) | st.integers(0, 10**7).map(lambda ticks: ticks / 2**7)


@compiled_only
@given(st.lists(st.tuples(TIMES, TIMES, TIMES), min_size=1, max_size=20))
def test_both_cores_write_the_same_numbers(found: list[tuple[float, float, float]]) -> None:
    """Ticks in binary fractions are often just between two numbers of six decimals."""

    def write() -> str:
        files = MemoryFiles()
        outputs = fastest(Outputs)(PREFIX, new_file=files.new_file)
        for submission, wait, run_time in found:
            job, start = Job("w0!1", submission, 1, run_time, "p,"), submission + wait
            outputs.finished(job, JobState.SUCCESS, HostSet.of([0]), start, start + run_time, -1.0, "")
        outputs.abandon()
        file = files.open("jobs")
        assert file is not None
        return file.read()

    pure, compiled = on_both(write)
    assert compiled == pure


@compiled_only
@settings(max_examples=100, deadline=None)
@given(
    records(sizes=st.integers(1, 3), waits=st.integers(0, 20)),
    st.sampled_from(["arrival", "last", "max"]),
    st.sampled_from([0, 0.05, 0.25, 60]),
    st.sampled_from(["reduced", "all"]),
)
def test_both_cores_cut_and_link_the_same_sessions(
    found: list[Record], rule: str, minutes: float, edges: str
) -> None:
    options = {"sessions": f"{rule}:{minutes}", "edges": edges}

    def play() -> str:
        return replay(USERS.create("think-time", options).users(workload_of(found)), hosts=2)

    pure, compiled = on_both(play)
    assert compiled == pure


COMMAND_USERS = [
    [],
    ["--users", "rigid"],
    ["--users", "think-time", "--sessions", "arrival:60"],
]


def files_of(folder: Path, *arguments: str) -> Callable[[], dict[str, bytes]]:
    """What ``batsched-py run`` writes."""

    def run() -> dict[str, bytes]:
        prefix = folder / f"{core.compiled}" / "out"
        result = CliRunner().invoke(batsched_py, ["run", *arguments, "-e", str(prefix)])
        assert result.exit_code == 0, result.output
        return {path.name: path.read_bytes() for path in sorted(prefix.parent.iterdir())}

    return run


@pytest.fixture(scope="module")
def sample(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first jobs of the sample log."""
    lines = (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("sample") / "sample.swf"
    path.write_text("".join(lines[:400]))
    return str(path)


@compiled_only
@pytest.mark.parametrize("users", COMMAND_USERS, ids=["static", "rigid", "think-time"])
@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS.all()))
def test_both_cores_write_the_same_files(
    sample: str, tmp_path: Path, scheduler: str, users: list[str]
) -> None:
    pure, compiled = on_both(files_of(tmp_path, "-w", sample, "--hosts", "64", "-s", scheduler, *users))
    assert compiled == pure


@compiled_only
@pytest.mark.parametrize(
    "options",
    [
        ["-s", "easy", "--speed", "0.7"],
        ["-s", "easy", "-o", "order=wfp3", "--speed", "1.3"],
        ["-s", "easy", "-o", "selection=random"],
        ["-s", "easy", "--scheduling-delay", "0.5"],
        ["-s", "easy", "--enable-compute-sharing"],
        ["-s", "easy", "--walltime", "requested"],
    ],
    ids=" ".join,
)
def test_both_cores_write_the_same_files_with_options(
    sample: str, tmp_path: Path, options: list[str]
) -> None:
    pure, compiled = on_both(files_of(tmp_path, "-w", sample, "--hosts", "64", *options))
    assert compiled == pure


@compiled_only
@pytest.mark.slow
@pytest.mark.parametrize("users", COMMAND_USERS, ids=["static", "rigid", "think-time"])
@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS.all()))
def test_both_cores_write_the_same_files_of_a_real_log(
    shared: Path, tmp_path: Path, scheduler: str, users: list[str]
) -> None:
    log = str(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")
    pure, compiled = on_both(files_of(tmp_path, "-w", log, "-s", scheduler, *users))
    assert compiled == pure


LINE = "1 5 3 10 4 -1 -1 4 20 -1 1 7 1 -1 2 1 -1 -1"


@compiled_only
@pytest.mark.parametrize(
    "text",
    [
        f"; MaxProcs: 9\n;  a line\n\n{LINE}\n",
        f"{LINE}\r\n{LINE.replace('1 5', '2 6.25', 1)}",
        f" \t{LINE} \n{LINE.replace('1 5', '2 1', 1)}\n{LINE.replace('1 5', '3 1', 1)}",
        LINE.replace(" 10 ", " 10.123456789 "),
        LINE.replace(" 10 ", " 0 ").replace(" 20 ", " -1 "),
        LINE.replace(" 10 ", " -1 ") + "\n" + LINE.replace("1 5", "2 5", 1),
        f"{LINE}\nnonsense\n{LINE}\n1 2 3\n",
        f"{LINE}\n{LINE.replace('1 5', '2 1e1', 1)}\n{LINE.replace('1 5', '3 99999999999999999', 1)}",
        f"{LINE}\n{LINE.replace('1 5', '2 -5', 1)}\n{LINE.replace('1 5', '3.5 9', 1)}",
        LINE.replace(" 4 ", " 0 ") + "\n" + LINE.replace("1 5", "2 5", 1),
        LINE.replace(" 4 ", " 0 "),
        "; nothing\n",
        "",
    ],
)
def test_both_cores_read_the_same_in_a_log(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "log.swf.gz"
    file.write_bytes(gzip.compress(text.encode()))

    def read() -> Any:
        caplog.clear()
        try:
            workload = read_workload(file, "w0")
        except BatschedError as error:
            return str(error)
        jobs = [
            (job.id, job.submission_time, job.size, job.walltime, job.profile, job.extra)
            for job in workload.jobs
        ]
        assert workload.finishes is not None
        finishes = [float(finish) for finish in workload.finishes]
        return jobs, workload.profiles, workload.nb_hosts, workload.path, finishes, caplog.messages

    pure, compiled = on_both(read)
    assert compiled == pure


class Fails(Scheduler):
    """A policy with a mistake."""

    name = "fails"

    def __init__(self, mistake: Callable[[Cluster], None]) -> None:
        self._mistake = mistake

    def schedule(self, cluster: Cluster) -> None:
        if cluster.queue:
            self._mistake(cluster)


def twice(cluster: Cluster) -> None:
    head = cluster.queue.head
    cluster.start(head)
    cluster.start(head)


def unnoticed(cluster: Cluster) -> None:
    try:
        twice(cluster)
    except RuleBroken:
        return


@compiled_only
@pytest.mark.parametrize("mistake", [twice, unnoticed, lambda cluster: 1 / 0])
def test_both_cores_say_the_same_about_a_mistake(mistake: Callable[[Cluster], None]) -> None:
    def fail() -> str:
        workload = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
        with pytest.raises(PolicyError) as raised:
            simulate(Batsim(Setup(Platform.homogeneous(2), [workload])), DecisionProcess(Fails(mistake)))
        return str(raised.value)

    pure, compiled = on_both(fail)
    assert compiled == pure


@compiled_only
def test_a_simulation_that_is_over_leaves_nothing_behind() -> None:
    workload = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
    process = DecisionProcess(SCHEDULERS.create("easy", {}))
    batsim = Batsim(Setup(Platform.homogeneous(2), [workload]))
    simulate(batsim, process)
    left = [weakref.ref(batsim.ledger.registry), weakref.ref(process)]
    del batsim, process
    gc.collect()
    assert [reference() for reference in left] == [None, None]


def test_the_python_classes_can_be_chosen() -> None:
    version = [sys.executable, "-m", "batsched_py", "--version"]
    run = subprocess.run(
        version,
        env=environment() | {core.PURE: "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert run.stdout.endswith("(pure Python)\n")


@pytest.mark.parametrize(
    "command",
    [
        "schedulers",
        "users",
        "models",
        "run -w {root}/workloads/sample.swf -s easy --users think-time",
        "campaign plan {root}/plans/sample.toml",
    ],
)
def test_a_machine_without_a_compiler_lacks_nothing(command: str, root: Path, tmp_path: Path) -> None:
    """There the module of the compiled classes cannot be imported, whoever may want to."""
    arguments = command.format(root=root).split()
    code = (
        "import sys; sys.modules['batsched_py._native'] = None; "
        f"from batsched_py.cli.main import batsched_py; batsched_py({arguments!r})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (run.returncode, run.stderr) == (0, "")
