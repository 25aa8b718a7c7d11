"""The running jobs."""

from bisect import bisect_left, insort
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from batsched_py.ledger.kinds import Live, check_name
from batsched_py.protocol.events import ExecuteJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job


class RunningJob(Struct, frozen=True, gc=False, eq=False):
    """A job on its hosts, as the ledger keeps it; nobody else can change it."""

    job: Job
    hosts: HostSet
    start: float
    expected_end: float
    """When its walltime will be over, or when the policy expects it to end."""
    nb_hosts: int
    """How many hosts it has."""
    number: int
    """How many were started until then; of jobs that are expected to end at once, this one breaks the tie."""
    decision: ExecuteJob | None = None
    """What was decided, where that says more than which hosts."""


class Running(Live):
    """The running jobs, ordered by expected end. Methods with an underscore are the ledger's."""

    __slots__ = ("_by_end", "_count", "_jobs")

    def __init__(self) -> None:
        self._by_end: list[tuple[float, int, RunningJob]] = []
        """Expected end, number and job."""
        self._jobs: dict[str, RunningJob] = {}
        self._count = 0
        """How many were started so far."""

    def get(self, job_id: str) -> RunningJob | None:
        """The running job of this name, if there is one."""
        check_name(job_id)
        return self._jobs.get(job_id)

    def __iter__(self) -> Iterator[RunningJob]:
        """Those that run now, whatever becomes of them meanwhile."""
        return iter([running for _, _, running in self._by_end])

    def __len__(self) -> int:
        return len(self._by_end)

    def __contains__(self, job_id: str) -> bool:
        check_name(job_id)
        return job_id in self._jobs

    def _add(self, job: Job, hosts: HostSet, start: float, run_time: float, nb_hosts: int) -> RunningJob:
        """A job was started, and is expected to run for so long."""
        self._count = number = self._count + 1
        expected_end = start + run_time
        self._jobs[job.id] = running = RunningJob(job, hosts, start, expected_end, nb_hosts, number)
        insort(self._by_end, (expected_end, number, running))
        return running

    def _pop(self, job_id: str) -> RunningJob | None:
        """A job has ended; it is returned if it was running."""
        running = self._jobs.pop(job_id, None)
        if running is not None:
            by_end = self._by_end
            del by_end[bisect_left(by_end, (running.expected_end, running.number))]
        return running

    def _expect(self, job_id: str, run_time: float) -> None:
        """A job is now expected to run for so long in all."""
        running = self._jobs[job_id]
        by_end = self._by_end
        del by_end[bisect_left(by_end, (running.expected_end, running.number))]
        force_setattr(running, "expected_end", running.start + run_time)
        insort(by_end, (running.expected_end, running.number, running))

    def _resize(self, job_id: str, hosts: HostSet) -> RunningJob:
        """A job has other hosts from now on; whoever has looked at it before still sees the old ones."""
        before = self._jobs[job_id]
        self._jobs[job_id] = running = replace(before, hosts=hosts, nb_hosts=len(hosts))
        by_end = self._by_end
        place = bisect_left(by_end, (before.expected_end, before.number))
        by_end[place] = (before.expected_end, before.number, running)
        return running


#: How a file of resizes begins.
RESIZES_HEADER = "job_id,time,hosts_before,hosts_after\n"


class ResizedJob(Struct, frozen=True, gc=False, eq=False):
    """A malleable job that goes on with other hosts."""

    job: Job
    before: HostSet
    hosts: HostSet
    time: float
