"""Doing the tasks of a result again, and telling whether every schedule is the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from batsched_py.api.terminal import shown
from batsched_py.benchmark.results import Identity, Result
from batsched_py.benchmark.runs import Done, done
from batsched_py.benchmark.tasks import Benchmark, Task
from batsched_py.benchmark.workloads import Logs
from batsched_py.errors import InputError


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
