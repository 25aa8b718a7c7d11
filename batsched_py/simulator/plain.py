"""Plain jobs: those of which nothing is to be known but how long they take."""

from __future__ import annotations

from heapq import heappush

from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.events import Progress
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import TIMING_PRECISION, Homogeneous
from batsched_py.protocol.sizes import MALLEABLE
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.machines import Machines

_SUCCESS = JobState.SUCCESS


class PlainJobs:
    """An execution model: the same computation on each of the equally fast hosts of a job, and nothing else.

    A running job is no more than an entry in the agenda. How it will end stands there in the place of an
    action, and the job in the place of its argument.
    """

    def __init__(self, agenda: Agenda, machines: Machines, catalog: Catalog, exact: dict[str, Job]) -> None:
        self.speed = 0.0
        """Of all hosts in flop/s; 0 where no job is plain."""
        self._agenda = agenda
        self._machines = machines
        self._profiles = catalog.profiles
        self._catalog = catalog
        self._exact = exact

    def start(self, running: RunningJob) -> bool:
        """Run a job, if it is plain."""
        agenda, job = self._agenda, running.job
        now = agenda.clock
        if not self.speed or running.decision is not None or running.start != now:
            return False
        profile = self._profiles[job.id.partition("!")[0]][job.profile]
        if type(profile) is not Homogeneous or profile.return_code or profile.bytes_sent:
            return False
        if self._exact and job.id in self._exact:
            return False
        if self._catalog.malleable and MALLEABLE in job.extra:
            return False
        self._machines.occupy(running.hosts, running.nb_hosts, now)
        seconds, end = profile.work / self.speed, _SUCCESS
        if seconds > job.walltime + TIMING_PRECISION:
            seconds, end = job.walltime, JobState.WALLTIME_REACHED
        agenda.count = number = agenda.count + 1
        heappush(agenda.heap, (now + seconds, 0, number, end, running))
        return True

    def running(self) -> list[tuple[int, RunningJob]]:
        """The jobs with their numbers in the agenda."""
        return [(number, job) for _, _, number, _, job in self._agenda.heap if type(job) is RunningJob]

    def busy(self) -> HostSet:
        """The hosts that run jobs."""
        mask = 0
        for _, running in self.running():
            mask |= running.hosts.mask
        return HostSet(mask)

    def progress(self, running: RunningJob) -> Progress:
        """How far a job has come."""
        job = running.job
        profile = self._profiles[job.workload][job.profile]
        assert isinstance(profile, Homogeneous)
        seconds = profile.work / self.speed
        done = min((self._agenda.clock - running.start) / seconds, 1.0) if seconds > 0 else 1.0
        return Progress(job.profile, done=done)
