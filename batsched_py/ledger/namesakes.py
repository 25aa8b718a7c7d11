"""Jobs of the same user and name, of which a ``singleton`` lets one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from batsched_py.protocol.jobs import Job


class Namesakes:
    """For each user and name, the jobs that are not over, in the order of submission.

    They are counted from the first time that somebody asks for a user and a name. ``active`` gives all jobs
    that were submitted and are not over.
    """

    def __init__(self, active: Callable[[], Iterable[Job]]) -> None:
        self._active = active
        self._groups: dict[tuple[str | None, str], dict[str, None]] = {}

    def __bool__(self) -> bool:
        """Whether anybody has asked."""
        return bool(self._groups)

    def submitted(self, job: Job) -> None:
        """A job is submitted."""
        group = self._groups.get(_owner(job))
        if group is not None:
            group[job.id] = None

    def is_first(self, job: Job) -> bool:
        """Whether a job that is submitted now is the only one of its user and name that is not over."""
        owner = _owner(job)
        if owner not in self._groups:
            others = (other.id for other in self._active() if _owner(other) == owner)
            self._groups[owner] = dict.fromkeys([*(id for id in others if id != job.id), job.id])
        return next(iter(self._groups[owner])) == job.id

    def over(self, job: Job) -> str | None:
        """A job is over: the one that is first now in its place, if it was first."""
        group = self._groups.get(_owner(job))
        if group is None or job.id not in group:
            return None
        was_first = next(iter(group)) == job.id
        del group[job.id]
        return next(iter(group), None) if was_first else None

    def rename(self, job: Job, name: str, next_name: str) -> None:
        """An execution of a job goes on under another name, in its place."""
        group = self._groups.get(_owner(job))
        if group is not None and name in group:
            self._groups[_owner(job)] = {next_name if each == name else each: None for each in group}


def _owner(job: Job) -> tuple[str | None, str]:
    """Whose job it is, and how it is called; a log has the number of its program."""
    return job.user, str(job.extra.get("name", job.extra.get("executable", "")))
