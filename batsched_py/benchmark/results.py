"""What a policy came to on all tasks: one file, with a digest over everything but where and how long.

The file is written anew after each task, so whatever interrupts a run, the same command goes on where it was.
Verifying a result does its tasks again, and tells whether every schedule is the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
from msgspec import Struct

from batsched_py import __version__
from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import Outcome, summary_in
from batsched_py.analysis.schedule import read_table, schedule_in
from batsched_py.api.terminal import shown
from batsched_py.benchmark.tasks import Benchmark, Logs, Made, Task
from batsched_py.campaign.files import digest_of_code, digest_of_file, digest_of_value, read_json
from batsched_py.decision.pybatsim import pybatsim_version
from batsched_py.engines import python
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario
from batsched_py.experiment.build import new_batsim, read_machine
from batsched_py.experiment.run import run_experiment
from batsched_py.output_files import write_file
from batsched_py.plugins import PYBATSIM
from batsched_py.protocol.dialects import VERSIONS
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.outputs import PREFIX, MemoryFiles, Outputs
from batsched_py.testing.programs import PORT, SOCKET, Program
from batsched_py.trust import NotTrusted, check_code

#: The word that stands for the Python of this process, so that a command is the same on every machine.
PYTHON = "python"


class Policy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who decides: a scheduler, or a program that is asked over ZeroMQ."""

    name: str
    """What tables call it."""
    scheduler: Choice | None = None
    command: tuple[str, ...] = ()

    @classmethod
    def parse(cls, words: Sequence[str], options: Mapping[str, str], name: str = "") -> Policy:
        """What a command line says: the name of a scheduler, or a command with the place of the address.

        >>> Policy.parse(["easy"], {"order": "wfp3"}).name
        'easy order=wfp3'
        """
        if any(SOCKET in word or PORT in word for word in words):
            if options:
                raise InputError("a program takes its options in its own command; leave out -o")
            program = words[1] if words[0] == PYTHON and len(words) > 1 else words[0]
            return cls(name=name or Path(program).name, command=tuple(words))
        if len(words) != 1:
            raise InputError(
                "give one policy, or the command of a program with {socket} where the address goes"
            )
        usual = " ".join([words[0], *(f"{key}={value}" for key, value in options.items())])
        return cls(name=name or usual, scheduler=Choice(words[0], dict(options)))

    def __post_init__(self) -> None:
        if (self.scheduler is None) == (not self.command):
            raise ValueError("either a scheduler or a command")

    @property
    def file_name(self) -> str:
        """Where its result is kept unless somebody says it.

        >>> Policy.parse(["easy"], {"order": "wfp3"}).file_name
        'easy-order-wfp3.benchmark.json'
        """
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-.") + ".benchmark.json"

    @property
    def is_foreign(self) -> bool:
        """Whether it is of PyBatsim or a program: it knows hosts only, and its users cannot react."""
        return self.scheduler is None or self.scheduler.name.startswith(PYBATSIM)

    def applies(self, task: Task) -> bool:
        """Whether it can do a task."""
        return not self.is_foreign or (task.users, task.machine) == ("rigid", "plain")

    def check(self) -> None:
        """Refuse in one line what cannot be found, or may not be executed."""
        if self.scheduler is None:
            check_code(shlex.join(self.command))
        elif not self.is_foreign:
            SCHEDULERS.create(self.scheduler.name, self.scheduler.options)

    @property
    def words(self) -> list[str]:
        """The command, with the Python of this process where that is meant."""
        first, *others = self.command
        return [sys.executable if first == PYTHON else first, *others]

    @property
    def code(self) -> str:
        """The digest of the code that decides, as far as it is known."""
        if self.scheduler is None:
            return digest_of_value(
                {word: digest_of_file(word) for word in self.command if Path(word).is_file()}
            )
        actors = Actors(scheduler=self.scheduler)
        return digest_of_code(Experiment(scenario=Scenario(), actors=actors))

    @property
    def versions(self) -> dict[str, str]:
        """Of what it needs beside this package."""
        is_pybatsim = self.scheduler is not None and self.is_foreign
        return {"pybatsim": pybatsim_version()} if is_pybatsim else {}


#: What is measured over the week of a task.
MEASURED = (
    "mean_bounded_slowdown",
    "area_weighted_turnaround_time",
    "mean_waiting_time",
    "p99_waiting_time",
    "utilization",
    "nb_jobs_rejected",
)

#: So many seconds a program may take for each reply.
PATIENCE = 60.0

State = Literal["ok", "failed", "not-applicable"]


class Done(Struct, frozen=True, omit_defaults=True):
    """What has come of a task."""

    state: State
    jobs_sha256: str = ""
    """The SHA-256 of the bytes of the file of jobs: two schedules are the same if this is."""
    metrics: dict[str, float | None] = {}
    """To six digits; nothing where a metric has no value."""
    error: str = ""
    """Why it failed."""

    def is_as(self, other: Done) -> bool:
        """Whether both came to the same."""
        return (self.state, self.jobs_sha256, self.metrics) == (other.state, other.jobs_sha256, other.metrics)


def done(policy: Policy, made: Made) -> Done:
    """Do a task; a policy that fails has failed on this task only."""
    try:
        kept = _decided_elsewhere(policy, made) if policy.scheduler is None else _decided_here(policy, made)
        schedule = read_table(kept.open, "jobs", schedule_in)
        jobs = kept.open("jobs")
        assert schedule is not None and jobs is not None
        digest = hashlib.sha256(jobs.read().encode()).hexdigest()
        inside = Outcome.of(schedule, summary_in(kept.open("schedule"))).within(made.window)
        values = {metric.name: float(metric.compute(inside)) for metric in METRICS if metric.name in MEASURED}
    except NotTrusted:
        raise
    except BatschedError as error:
        return Done("failed", error=str(error))
    return Done("ok", digest, {name: _rounded(values[name]) for name in MEASURED})


def _decided_here(policy: Policy, made: Made) -> MemoryFiles:
    assert policy.scheduler is not None
    kept = MemoryFiles()
    run_experiment(made.under(policy.scheduler), made.workloads, PREFIX, new_file=kept.new_file)
    return kept


def _decided_elsewhere(policy: Policy, made: Made) -> MemoryFiles:
    """A program decides; it is started anew for each task."""
    kept, scenario = MemoryFiles(), made.experiment.scenario
    platform = read_machine(scenario.machine, made.workloads)
    outputs = partial(Outputs, new_file=kept.new_file)
    with TemporaryDirectory() as folder, Program(policy.words, Path(folder), PATIENCE) as program:
        process = RemoteProcess(program, VERSIONS["4"])
        batsim = new_batsim(scenario, platform, made.workloads, PREFIX, outputs)
        python.simulate(batsim, process)
    return kept


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if isfinite(value) else None


class Identity(Struct, frozen=True, kw_only=True):
    """What a result is of."""

    benchmark: str
    """The version of the benchmark."""
    tasks_sha256: str
    """The digest of all its tasks."""
    policy: Policy
    code_sha256: str
    """The digest of the code that decides and simulates, or of the files that a command names."""
    versions: dict[str, str]

    @classmethod
    def of(cls, policy: Policy, benchmark: Benchmark) -> Identity:
        """What a result would be of that was begun now."""
        return cls(
            benchmark=benchmark.version,
            tasks_sha256=benchmark.digest,
            policy=policy,
            code_sha256=policy.code,
            versions={"batsched_py": __version__} | policy.versions,
        )


class Result(Struct, frozen=True, kw_only=True):
    """A policy on the tasks of a benchmark."""

    what: Identity
    tasks: dict[str, Done]
    """By the names of tasks; those that are not here have not been done yet."""
    sha256: str = ""
    """The digest of all above."""
    machine: str = ""
    seconds: float = 0.0
    """Of processor time of this process and of programs, in all."""

    @property
    def digest(self) -> str:
        """What ``sha256`` has to be."""
        return digest_of_value([self.what, self.tasks])

    @property
    def name(self) -> str:
        """What tables call the policy."""
        return self.what.policy.name

    def count(self, state: str) -> int:
        """How many tasks came to this."""
        return sum(each.state == state for each in self.tasks.values())

    @classmethod
    def read(cls, file: Path) -> Result:
        """The result in a file, which nobody has changed."""
        result = read_json(file, cls)
        if result.sha256 != result.digest:
            raise InputError(f"{file}: was changed after it was written: its digest is another one")
        return result

    def write(self, file: Path) -> None:
        """Write it with its digest."""
        sealed = msgspec.structs.replace(self, sha256=self.digest)
        write_file(file, msgspec.json.format(msgspec.json.encode(sealed, order="sorted"), indent=1) + b"\n")


def begun(file: Path, what: Identity) -> Result:
    """What is done already: all that the file has, if it is of the same; nothing if the code has changed."""
    nothing = Result(what=what, tasks={})
    if not file.exists():
        return nothing
    kept = Result.read(file)
    if kept.what.policy != what.policy:
        raise InputError(f"{file}: is the result of {kept.name}; give another --output")
    return kept if kept.what == what else nothing


def run(policy: Policy, benchmark: Benchmark, logs: Logs, file: Path) -> Result:
    """Do all tasks that are not in the file yet, and keep each there."""
    policy.check()
    result = begun(file, Identity.of(policy, benchmark))
    with shown("tasks", lambda: (len(result.tasks), len(benchmark.tasks)), policy.name):
        for task in benchmark.tasks:
            if task.name in result.tasks:
                continue
            began = _processor_time()
            its = done(policy, logs.made(task)) if policy.applies(task) else Done("not-applicable")
            result = Result(
                what=result.what,
                tasks=result.tasks | {task.name: its},
                machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
                seconds=round(result.seconds + _processor_time() - began, 3),
            )
            result.write(file)
    return result


def _processor_time() -> float:
    return sum(os.times()[:4])


class Verified(Struct, frozen=True):
    """What came of doing tasks again."""

    nb_tasks: int
    differences: list[str]
    """One line for each task that came to something else."""
    remarks: list[str]
    """What is another one than it was, and makes no difference by itself."""


def check(file: Path, result: Result, benchmark: Benchmark) -> None:
    """Refuse a result of other tasks."""
    if result.what.benchmark != benchmark.version:
        raise InputError(
            f"{file}: is of version {result.what.benchmark} of the benchmark, and this is version "
            f"{benchmark.version}; results of two versions are not compared"
        )
    names = {task.name for task in benchmark.tasks}
    if result.what.tasks_sha256 != benchmark.digest or not names.issuperset(result.tasks):
        raise InputError(f"{file}: is of other tasks than those of version {benchmark.version}")


def sample(tasks: Sequence[Task], count: int | None) -> Sequence[Task]:
    """So many of the tasks, always the same, evenly among all of them."""
    if count is None or count >= len(tasks):
        return tasks
    return [tasks[place * len(tasks) // count] for place in range(count)]


def verified(result: Result, benchmark: Benchmark, logs: Logs, count: int | None) -> Verified:
    """Do tasks of a result again, all or so many of them."""
    policy = result.what.policy
    policy.check()
    tasks = sample([task for task in benchmark.tasks if task.name in result.tasks], count)
    again: list[Done] = []
    with shown("tasks", lambda: (len(again), len(tasks)), policy.name):
        for task in tasks:
            again.append(done(policy, logs.made(task)) if policy.applies(task) else Done("not-applicable"))
    differences = [
        f"{task.name}: {_told(then, now)}"
        for task, now in zip(tasks, again, strict=True)
        if not now.is_as(then := result.tasks[task.name])
    ]
    return Verified(len(tasks), differences, list(_remarks(result, benchmark)))


def _remarks(result: Result, benchmark: Benchmark) -> Iterator[str]:
    policy = result.what.policy
    now = Identity.of(policy, benchmark)
    if now.code_sha256 != result.what.code_sha256:
        yield (f"the code of {policy.name}, or of the simulator, has changed since")
    for name, version in now.versions.items():
        if (then := result.what.versions.get(name)) != version:
            yield (f"this is {name} {version}, and it was {then}")
    if missing := len(benchmark.tasks) - len(result.tasks):
        yield (f"{missing} of {len(benchmark.tasks)} tasks have not been done yet")


def _told(then: Done, now: Done) -> str:
    """What is different."""
    if then.state != now.state:
        return f"was {then.state}, and is {now.state} {now.error}".rstrip()
    if then.jobs_sha256 != now.jobs_sha256:
        return f"the digest of its jobs was {then.jobs_sha256[:12]}, and is {now.jobs_sha256[:12]}"
    names = [name for name in now.metrics if now.metrics[name] != then.metrics.get(name)]
    first = names[0] if names else "the list of metrics"
    return f"{first} was {then.metrics.get(first)}, and is {now.metrics.get(first)}"
