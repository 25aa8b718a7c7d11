"""Small workloads on which every scheduler is tried, in Python or in any other language.

Each case is about one thing that schedulers get wrong: ties, a full machine, jobs that are killed by others
or registered while the simulation runs. ``batsched-py check`` tries a program on them, over a socket, and
:func:`batsched_py.testing.check` a policy in Python.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Policy as Promise
from batsched_py.analysis.validator import validate
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import JobSpec, process_of, rows_in, workload_of
from batsched_py.workload.model import Workload


@dataclass(frozen=True)
class Case:
    """A machine and jobs, and what somebody else does to them meanwhile."""

    name: str
    about: str
    hosts: int
    jobs: Sequence[JobSpec]
    kills: Mapping[str, float] = field(default_factory=dict)
    """Jobs that are killed, by someone else, at the first message from this time on in which they run."""
    registered: Sequence[JobSpec] = ()
    """Jobs that someone else registers, each after the first message from its submission on."""

    def __str__(self) -> str:
        lines = [f"case {self.name!r}: {self.about}", f"{self.hosts} hosts", *map(str, self.jobs)]
        lines += [f"registered while it runs: {spec}" for spec in self.registered]
        return "\n".join([*lines, *(f"job {job} is killed at {time:g}" for job, time in self.kills.items())])

    @property
    def workloads(self) -> list[Workload]:
        """The jobs of the file, and those that are registered."""
        later = [workload_of(self.registered, "dynamic")] if self.registered else []
        return [workload_of(self.jobs), *later]


def _job(name: str, submission: float, size: int, run_time: float, walltime: float = inf) -> JobSpec:
    return JobSpec(name, submission, size, run_time, walltime)


_MANY = [
    _job(f"j{n:02}", n // 3 * 2.0, 1 + (5 * n) % 8, 1 + (7 * n) % 13, 2 + (7 * n) % 13 + (3 * n) % 5)
    for n in range(48)
]

#: Every case.
CASES = (
    Case("one job", "The machine is empty, and one job comes.", 4, [_job("a", 0, 2, 10, 20)]),
    Case(
        "ties",
        "Jobs are submitted at one instant, and end at one instant, in which others are submitted.",
        4,
        [_job(name, 0, 1, 10, 10) for name in "abcde"]
        + [_job(name, 10, size, 5, 5) for name, size in zip("fgh", (2, 4, 1), strict=True)],
    ),
    Case(
        "full machine",
        "Jobs that need all hosts come between jobs that need one.",
        4,
        [
            _job(f"{name}{size}", n, size, 6, 8)
            for n, (name, size) in enumerate(zip("abcdef", [1, 4] * 3, strict=True))
        ],
    ),
    Case(
        "scattered hosts",
        "Hosts become free that are not side by side, and a job needs several of them.",
        6,
        [_job(name, 0, 1, run, run) for name, run in zip("abcdef", (3, 9, 3, 9, 3, 9), strict=True)]
        + [_job("g", 1, 3, 4, 4), _job("h", 1, 6, 2, 2), _job("i", 2, 2, 1, 1)],
    ),
    Case(
        "walltimes",
        "Jobs run into their walltimes, end just at them, or have none.",
        4,
        [
            _job("late", 0, 2, 50, 10),
            _job("exact", 0, 2, 20, 20),
            _job("free", 1, 3, 7),
            _job("next", 2, 4, 3, 4),
        ],
    ),
    Case(
        "fractions",
        "Times are no whole numbers of seconds.",
        4,
        [_job(f"{n}", n / 3, 1 + n % 3, 0.7 + n / 7, 1.9 + n / 7) for n in range(10)],
    ),
    Case(
        "a job larger than the machine",
        "One job needs more hosts than there are; those that come after it must go on.",
        4,
        [_job("a", 0, 3, 10, 10), _job("large", 1, 5, 10, 10), _job("b", 2, 4, 5, 5), _job("c", 3, 1, 1, 1)],
    ),
    Case(
        "nothing but rejections",
        "No job can run: all are rejected, and the simulation ends.",
        2,
        [_job("a", 0, 3, 1, 1), _job("b", 0, 8, 1, 1), _job("c", 5, 3, 1, 1)],
    ),
    Case(
        "kills",
        "Somebody else kills running jobs, as users do; their hosts are free again.",
        4,
        [
            *(_job("a", 0, 4, 100, 100), _job("b", 1, 4, 10, 10), _job("c", 5, 2, 50, 60)),
            *(_job("d", 20, 2, 5, 5), _job("e", 25, 4, 5, 5), _job("f", 26, 1, 1, 1)),
        ],
        kills={"w0!a": 5, "w0!c": 25},
    ),
    Case(
        "dynamic jobs",
        "Somebody else registers jobs while the simulation runs, the last when the file has no more.",
        4,
        [_job("a", 0, 3, 10, 12), _job("b", 4, 2, 10, 12), _job("c", 22.5, 1, 30, 40)],
        registered=[_job("d", 5, 1, 3, 4), _job("e", 15, 4, 5, 6), _job("f", 30, 4, 2, 2)],
    ),
    Case("many jobs", "A queue that grows, with jobs of all sizes.", 8, _MANY),
)


class Outsider:
    """A decision process with somebody beside it who kills and registers jobs, as a case says.

    What both say goes to the simulator in one reply. It also looks at the times of replies, where Batsim is
    generous: time may not go back.
    """

    def __init__(self, process: Decides, case: Case) -> None:
        self._process = process
        self._case = case
        self._kills = dict(case.kills)
        self._running: set[str] = set()
        later = case.workloads[-1] if case.registered else Workload("dynamic", [], {})
        self._to_register, self._profiles = list(later.jobs), later.profiles
        self.registered: list[Job] = []
        """Those that were registered so far, with the time of that."""

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        reply = self._process.react(request)
        _check_times(request, reply)
        self._running -= {event.job_id for event in request.events if isinstance(event, ev.JobCompleted)}
        if self._case.registered:
            reply.events = [each for each in reply.events if not isinstance(each, ev.RegistrationFinished)]
        if any(isinstance(event, ev.SimulationBegins | ev.SimulationEnds) for event in request.events):
            return reply
        reply.events += [*self._registrations(reply.now), *self._killing(request.now, reply.now)]
        self._running |= {event.job_id for event in reply.events if isinstance(event, ev.ExecuteJob)}
        return reply

    def _registrations(self, now: float) -> Iterator[ev.Event]:
        due = [replace(job, submission_time=now) for job in self._to_register if job.submission_time <= now]
        self.registered += due
        for job in due:
            yield ev.RegisterProfile("dynamic", job.profile, self._profiles[job.profile], time=now)
            yield ev.RegisterJob(job, time=now)
        self._to_register = self._to_register[len(due) :]
        if due and not self._to_register:
            yield ev.RegistrationFinished(time=now)

    def _killing(self, now: float, reply_now: float) -> Iterator[ev.Event]:
        for job in [job for job, time in self._kills.items() if time <= now and job in self._running]:
            del self._kills[job]
            yield ev.KillJobs([job], time=reply_now)


def _check_times(request: ev.Message, reply: ev.Message) -> None:
    """Time goes forward."""
    if reply.now < request.now - TICK:
        raise ProtocolError(
            f"time goes back: the reply to the message at {request.now:g} says it is {reply.now:g}"
        )
    for event in reply.events:
        if event.time < request.now - TICK:
            what = f"the decision {type(event).__name__} in the reply to the message at {request.now:g}"
            raise ProtocolError(f"time goes back: {what} has the time {event.time:g}")


def faults_in(
    process: Decides, case: Case, settings: ev.Settings = ev.Settings(), promise: Promise | None = None
) -> list[str]:
    """What is wrong with the schedule of a decision process in a case; what breaks a rule is raised.

    With the ``promise`` of FCFS, jobs must also start when they do with ours.
    """
    if case.registered:
        settings = ev.Settings(
            dynamic_jobs=True, acknowledge_dynamic_jobs=True, scheduler_config=settings.scheduler_config
        )
    tried = Outsider(process, case)
    with TemporaryDirectory() as folder:
        file = _simulated(tried, case, settings, f"{folder}/out")
        workloads = [
            *case.workloads[:1],
            *(replace(each, jobs=tried.registered) for each in case.workloads[1:]),
        ]
        found = list(map(str, validate(read_schedule(file), case.hosts, workloads, promise)))
        found += _rejected_needlessly(file, case)
        if promise == "fcfs" and not found:
            ours = _simulated(Outsider(_Fcfs(), case), case, settings, f"{folder}/fcfs")
            found += _later_than(ours, file)
        return found


def _simulated(process: Decides, case: Case, settings: ev.Settings, prefix: str) -> Path:
    setup = Setup(Platform.homogeneous(case.hosts), case.workloads[:1], settings)
    simulate(Batsim(setup, Outputs(prefix)), process)
    return Path(f"{prefix}_jobs.csv")


def _rejected_needlessly(file: Path, case: Case) -> Iterator[str]:
    for row in rows_in(file):
        if row["final_state"] == "REJECTED" and int(row["requested_number_of_resources"]) <= case.hosts:
            size = row["requested_number_of_resources"]
            yield f"job {row['job_id']} is rejected, although its {size} hosts are not more than {case.hosts}"


def _later_than(ours: Path, file: Path) -> Iterator[str]:
    begun = {row["job_id"]: row["starting_time"] for row in rows_in(ours)}
    for row in rows_in(file):
        if row["starting_time"] != begun[row["job_id"]]:
            times = f"at {row['starting_time']}, first come, first served at {begun[row['job_id']]}"
            yield f"job {row['job_id']} starts {times}"


class _Fcfs:
    """Our own first come, first served, by messages."""

    def __init__(self) -> None:
        self._process = process_of(Fcfs())

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        return self._process.react(request)
