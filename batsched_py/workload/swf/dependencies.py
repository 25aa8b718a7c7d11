"""What the jobs of a log wait for: as its source told, or the preceding jobs of the format."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from batsched_py.protocol.dependencies import AFTER, ARRAY
from batsched_py.protocol.jobs import Job
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.model import PrecedingRule
from batsched_py.workload.swf.conventions import number_text
from batsched_py.workload.swf.log import SwfLog


def with_dependencies(jobs: Sequence[Job], log: SwfLog, preceding: PrecedingRule) -> Sequence[Job]:
    """The jobs of a log with what they wait for in their ``extra``; the same sequence if it tells nothing.

    What they wait for that is not among the jobs, because it is in no log or was left out, is taken to be
    over. The source may call jobs by other names than the log, which are in its column ``id``.
    """
    told: dict[str, dict[str, str]] = {}
    if "id" in log.more and ("after" in log.more or "array" in log.more):
        told = _told(jobs, log)
    if preceding == "wait":
        for name, text in _preceding(jobs, log).items():
            fields = told.setdefault(name, {})
            if "?" not in fields.get(AFTER, ""):
                fields[AFTER] = ",".join(filter(None, [fields.get(AFTER), text]))
    if not any(told.values()):
        return jobs
    return [replace(job, extra=job.extra | told[job.name]) if told.get(job.name) else job for job in jobs]


def _told(jobs: Sequence[Job], log: SwfLog) -> dict[str, dict[str, str]]:
    """The fields of each job, by its name; an array has a name that no job has."""
    kept = {job.name for job in jobs}
    numbers = {
        name: str(number)
        for name, number in zip(log.more["id"].tolist(), log.job_number.tolist(), strict=True)
        if str(number) in kept
    }
    tasks: dict[str, list[str]] = {}
    for name, number in numbers.items():
        array, underscore, _ = name.partition("_")
        if underscore:
            tasks.setdefault(array, []).append(number)
    awaited: set[str] = set()

    def rename(name: str) -> str | None:
        if name not in numbers and name in tasks:
            awaited.add(name)
            return f"array{name}"
        return numbers.get(name)

    nothing = [""] * len(log)
    after = log.more["after"].tolist() if "after" in log.more else nothing
    arrays = log.more["array"].tolist() if "array" in log.more else nothing
    told: dict[str, dict[str, str]] = {}
    for number, text, array in zip(map(str, log.job_number.tolist()), after, arrays, strict=True):
        if number in kept and text and (renamed := rewritten(text, rename)):
            told.setdefault(number, {})[AFTER] = renamed
        if number in kept and array:
            told.setdefault(number, {})[ARRAY] = f"array{array}"
    for array in sorted(awaited):
        for number in tasks[array]:
            told.setdefault(number, {}).setdefault(ARRAY, f"array{array}")
    return told


def _preceding(jobs: Sequence[Job], log: SwfLog) -> dict[str, str]:
    """What each job waits for: its preceding job, if that was submitted before it, and its think time."""
    kept = {job.name for job in jobs}
    records = zip(
        map(str, log.job_number.tolist()),
        map(str, log.preceding_job.tolist()),
        log.think_time.tolist(),
        strict=True,
    )
    found: dict[str, str] = {}
    seen: set[str] = set()
    for number, before, think_time in records:
        if number in kept and before in kept and before in seen:
            delay = f"+{number_text(round(think_time, 6))}s" if think_time > 0 else ""
            found[number] = f"afterany:{before}{delay}"
        seen.add(number)
    return found
