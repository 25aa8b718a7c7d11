"""What a policy came to on all tasks: one file, with a digest over everything but where and how long.

The file is written anew after each task, so whatever interrupts a run, the same command goes on where it was.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

import msgspec
from msgspec import Struct

from batsched_py import __version__
from batsched_py.api.terminal import shown
from batsched_py.benchmark.policies import Policy
from batsched_py.benchmark.runs import Done, done
from batsched_py.benchmark.tasks import Benchmark
from batsched_py.benchmark.workloads import Logs
from batsched_py.campaign.files import digest_of_value, read_json
from batsched_py.errors import InputError
from batsched_py.output_files import write_file


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
