"""Running jobs, and three models of how long their tasks take: on hosts of their own, plain, and malleable.

The fourth model, tasks that share hosts and links, is in :mod:`~batsched_py.simulator.network.tasks`.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from heapq import heappush
from itertools import repeat
from math import inf
from operator import truediv

from msgspec import Struct

from batsched_py.ledger.running import RESIZES_HEADER, ResizedJob, RunningJob
from batsched_py.protocol import profiles as pr
from batsched_py.protocol.events import Progress
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import TIMING_PRECISION, Computation, Homogeneous, Profile, Speeds
from batsched_py.protocol.sizes import MALLEABLE, Malleable, malleable_of
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.outputs import Outputs, Write, quoted
from batsched_py.simulator.platform import PlatformHost

#: The profiles of a workload by name.
Profiles = Mapping[str, Profile]


class Frame(Struct):
    """A profile that consists of others and is under way."""

    name: str
    profile: pr.Composed | pr.Receive
    step: int = 0


class Execution(Struct, gc=False, eq=False):
    """A running job.

    Its profile is walked task by task; of a profile that consists of others, the stack of frames says where
    the walk is.
    """

    job: Job
    hosts: HostSet
    nb_hosts: int
    speeds: Speeds
    """Of the cores that its executors have, in flop/s."""
    start: float
    remaining: float
    """What was left of the walltime when the task began."""
    task_name: str
    task: Profile
    task_start: float
    agenda_number: int = 0
    """Of what happens to the job next, 0 if that depends on others."""
    frames: tuple[Frame, ...] = ()
    executors: list[int] | None = None
    """The host of each executor, when they are not one on each host in order."""
    storage_mapping: dict[str, int] | None = None
    io: tuple[HostSet, Profile] | None = None
    """What is moved beside the job, and the hosts for it."""
    listening: bool = False
    """Whether it waits for a message."""
    joules: float = 0.0
    """What its hosts had drawn when it began."""

    @property
    def nb_executors(self) -> int:
        """How many processes compute for it."""
        return self.nb_hosts if self.executors is None else len(self.executors)

    def places(self) -> list[int]:
        """The host of each executor."""
        return list(self.hosts) if self.executors is None else self.executors

    def spend(self, seconds: float) -> None:
        """A task took this much of the walltime.

        Overspent, if only by a rounding error, the walltime binds no more: Batsim takes what is left for
        its mark of having none.
        """
        self.remaining -= seconds
        if self.remaining < 0:
            self.remaining = inf

    def progress(self, done: float) -> Progress:
        """How far the job has come, when this part of its task is done."""
        node = Progress(self.task_name, done=done)
        for frame in reversed(self.frames):
            nb_tasks = len(frame.profile.parts)
            node = Progress(frame.name, task_index=frame.step, task=node, nb_tasks=nb_tasks)
        return node

    def go_into(self, name: str, profile: Profile, profiles: Profiles) -> None:
        """Go on with the first task of a profile, inside those that are under way."""
        while isinstance(profile, pr.Composed):
            self.frames += (Frame(name, profile),)
            name = profile.step_name(0)
            profile = profiles[name]
        self.task_name, self.task = name, profile

    def go_on(self, profiles: Profiles) -> int | None:
        """Go on to the next task of the profile; if there is none, the return code of the whole."""
        while self.frames:
            frame = self.frames[-1]
            frame.step += 1
            if frame.step < frame.profile.length:
                assert isinstance(frame.profile, pr.Composed)
                name = frame.profile.step_name(frame.step)
                self.go_into(name, profiles[name], profiles)
                return None
            if frame.profile.return_code:
                return frame.profile.return_code
            self.frames = self.frames[:-1]
        return 0


#: Says that the task of an execution will be done in so many seconds.
DoneIn = Callable[[Execution, float], None]


class Computing:
    """Computation on hosts of which each works for one job: how long a task takes is known when it begins."""

    def __init__(
        self, hosts: Sequence[PlatformHost], agenda: Agenda, done_in: DoneIn, meter: Meter | None
    ) -> None:
        self._agenda = agenda
        self._done_in = done_in
        self._meter = meter
        self._speeds = [host.speed for host in hosts]
        """Of one core of each host, in its present power state."""
        self._cores = [host.cores for host in hosts]
        self.even_speeds = Speeds(self._speeds[0]) if len(set(self._speeds)) == 1 else None
        """The speeds of any executors, when all hosts are equally fast."""

    def set_speed(self, host: int, speed: float) -> None:
        """The host has another power state from now on."""
        if speed != self._speeds[host]:
            self._speeds[host] = speed
            self.even_speeds = None
            self.__dict__.pop("_changes", None)

    def speed(self, host: int) -> float:
        """What one core of a host executes in a second."""
        return self._speeds[host]

    def capacity(self, host: int) -> float:
        """What all cores of a host execute in a second."""
        return self._speeds[host] * self._cores[host]

    @cached_property
    def _changes(self) -> list[int]:
        """The hosts that are not as fast as the one before."""
        speeds = self._speeds
        return [host for host in range(1, len(speeds)) if speeds[host] != speeds[host - 1]]

    def speeds(self, hosts: HostSet) -> Speeds:
        """The speeds of executors, one on each host, given by stretches of equally fast hosts."""
        speeds, changes = self._speeds, self._changes
        stretches: list[tuple[int, float]] = []
        for first, last in hosts.runs():
            for host in changes[bisect_right(changes, first) : bisect_right(changes, last)]:
                stretches.append((host - first, speeds[first]))
                first = host
            stretches.append((last + 1 - first, speeds[first]))
        return Speeds(min([speed for _, speed in stretches]), stretches)

    def executors(self, hosts: HostSet, mapping: Sequence[int]) -> tuple[list[int], Speeds]:
        """The host of each executor, and their speeds, when they are not one on each host in order."""
        places = list(hosts)
        executors = [places[place] for place in mapping]
        speeds = [self._speeds[host] for host in executors]
        return executors, Speeds(min(speeds), [(1, speed) for speed in speeds])

    def begin(self, execution: Execution, task: Computation) -> None:
        """A task begins to compute."""
        seconds = task.seconds(execution.nb_executors, execution.speeds)
        if execution.executors is not None or self._meter is not None:
            work = work_by_host(execution, task)
            speeds, cores = self._speeds, self._cores
            capacities = [speeds[host] * cores[host] for host in work]
            seconds = max(seconds, max(map(truediv, work.values(), capacities)))
            if self._meter is not None and seconds > 0:
                rates = [flops / seconds for flops in work.values()]
                self._meter.put_loads(work, map(truediv, rates, capacities))
        self._done_in(execution, seconds)

    def stop(self, execution: Execution) -> None:
        """A task computes no more, if it did."""
        if self._meter is not None:
            self._meter.put_loads(execution.hosts, repeat(0.0))

    def done(self, execution: Execution, task: Computation) -> float:
        """Which part of a task is done."""
        seconds = task.seconds(execution.nb_executors, execution.speeds)
        if execution.executors is not None:
            work = work_by_host(execution, task)
            seconds = max(seconds, *(flops / self.capacity(host) for host, flops in work.items()))
        return min((self._agenda.clock - execution.task_start) / seconds, 1.0) if seconds > 0 else 1.0


def work_by_host(execution: Execution, task: Computation) -> dict[int, float]:
    """The flops that all executors of a task have to do on each host."""
    executors = execution.places()
    all_flops = task.flops(len(executors))
    if execution.executors is None:
        return dict(zip(executors, all_flops, strict=True))
    work = dict.fromkeys(executors, 0.0)
    for host, flops in zip(executors, all_flops, strict=True):
        work[host] += flops
    return work


_SUCCESS = JobState.SUCCESS


class PlainJobs:
    """An execution model: the same computation on each of the equally fast hosts of a job, and nothing else.

    A running job is no more than an entry in the agenda. How it will end stands there in the place of an
    action, and the job in the place of its argument.
    """

    def __init__(
        self,
        agenda: Agenda,
        machines: Machines,
        catalog: Catalog,
        exact: dict[str, Job],
        speed: float,
        late_jobs_stay: bool,
    ) -> None:
        """The ``speed`` is that of all hosts in flop/s; 0 where no job is plain."""
        self._speed = speed
        self._late_jobs_stay = late_jobs_stay
        self._agenda = agenda
        self._machines = machines
        self._profiles = catalog.profiles
        self._catalog = catalog
        self._exact = exact

    def start(self, running: RunningJob) -> bool:
        """Run a job, if it is plain."""
        agenda, job = self._agenda, running.job
        now = agenda.clock
        if not self._speed or running.decision is not None or running.start != now:
            return False
        profile = self._profiles[job.id.partition("!")[0]][job.profile]
        if type(profile) is not Homogeneous or profile.return_code or profile.bytes_sent:
            return False
        if self._exact and job.id in self._exact:
            return False
        if self._catalog.malleable and MALLEABLE in job.extra:
            return False
        self._machines.occupy(running.hosts, running.nb_hosts, now)
        seconds, end = profile.work / self._speed, _SUCCESS
        if seconds > job.walltime + TIMING_PRECISION and not self._late_jobs_stay:
            seconds, end = job.walltime, JobState.WALLTIME_REACHED
        agenda.count = number = agenda.count + 1
        heappush(agenda.heap, (now + seconds, 0, number, end, running))
        return True

    def running(self) -> list[tuple[int, RunningJob]]:
        """The jobs with their numbers in the agenda."""
        heap, cancelled = self._agenda.heap, self._agenda.cancelled
        return [
            (each, job) for _, _, each, _, job in heap if type(job) is RunningJob and each not in cancelled
        ]

    def progress(self, running: RunningJob) -> Progress:
        """How far a job has come."""
        job = running.job
        profile = self._profiles[job.workload][job.profile]
        assert isinstance(profile, Homogeneous)
        seconds = profile.work / self._speed
        done = min((self._agenda.clock - running.start) / seconds, 1.0) if seconds > 0 else 1.0
        return Progress(job.profile, done=done)


class Share(Struct, eq=False):
    """How much of its task a job has to do, and how fast it does that."""

    malleable: Malleable
    left: Fraction
    """Of the whole task."""
    since: float
    """When that was so."""
    speed: Fraction
    """How much of the task is done in a second; 0 for a task that takes no time."""

    def left_at(self, now: float) -> Fraction:
        """How much is to be done at a time."""
        return max(self.left - (Fraction(now) - Fraction(self.since)) * self.speed, Fraction(0))

    def seconds(self) -> float:
        """How long the rest takes with the present size."""
        return float(self.left / self.speed) if self.speed else 0.0


class MalleableTasks(Struct, eq=False):
    """An execution model: one task on hosts of its own, whose number may change.

    How much of a task is done is kept exactly, as a fraction: the sum over its sizes of its speed with that
    size, times how long it had it. Only the time of its end is rounded, to what a clock can show.

    The profile says how long the task takes with as many hosts as the job asks for. With others it is as much
    faster or slower as the job's speedup says. All hosts go at the pace of the slowest.
    """

    _computing: Computing
    _agenda: Agenda
    _done_in: DoneIn
    _meter: Meter | None
    _outputs: Outputs
    _write: Write | None = None
    _shares: dict[str, Share] = {}

    def has(self, execution: Execution) -> bool:
        """Whether this is the execution of a malleable job."""
        return execution.job.id in self._shares

    def begin(self, execution: Execution) -> None:
        """The task of a malleable job begins."""
        if self._write is None:
            self._write = self._outputs.open("resizes", RESIZES_HEADER)
        malleable = malleable_of(execution.job)
        assert malleable is not None
        share = Share(malleable, Fraction(1), self._agenda.clock, self._speed(execution, malleable))
        self._shares[execution.job.id] = share
        self._load(execution)
        self._done_in(execution, share.seconds())

    def go_on(self, execution: Execution, resized: ResizedJob) -> None:
        """The task has other hosts from now on, which the execution knows already."""
        now, share = self._agenda.clock, self._shares[execution.job.id]
        share.left, share.since = share.left_at(now), now
        share.speed = self._speed(execution, share.malleable)
        if self._meter is not None:
            for host in resized.before - resized.hosts:
                self._meter.put_load(host, 0.0)
        self._load(execution)
        assert self._write is not None
        cells = (execution.job.id, f"{now:.6f}", resized.before.text(), resized.hosts.text())
        self._write(",".join(map(quoted, cells)) + "\n")
        self._done_in(execution, share.seconds())

    def stop(self, execution: Execution) -> None:
        """The task is over."""
        del self._shares[execution.job.id]

    def done(self, execution: Execution) -> float:
        """Which part of the task is done."""
        return float(1 - self._shares[execution.job.id].left_at(self._agenda.clock))

    def _speed(self, execution: Execution, malleable: Malleable) -> Fraction:
        size, task = execution.job.size, execution.task
        assert isinstance(task, pr.Delay | Computation)
        seconds = task.seconds if isinstance(task, pr.Delay) else task.seconds(size, execution.speeds)
        if not seconds:
            return Fraction(0)
        return malleable.speedup(execution.nb_hosts) / malleable.speedup(size) / Fraction(seconds)

    def _load(self, execution: Execution) -> None:
        """Hosts that compute for a malleable job use one core all the time."""
        if self._meter is not None and isinstance(execution.task, Computation):
            for host in execution.hosts:
                self._meter.put_load(host, self._computing.speed(host) / self._computing.capacity(host))
