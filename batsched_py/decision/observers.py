"""What looks on while a simulation runs: monitors, additional data over time, and what decisions cost.

A :class:`Monitor` hears what happens and what is decided. :class:`AdditionalData` computes a number at each
moment, which policies and metrics see. Each is a class in a file of your own, named
``path/to/file.py:ClassName``; ``examples/monitor.py`` and ``examples/additional_data.py`` have one each.
Other distributions offer theirs in the entry-point groups ``batsched_py.monitors`` and ``batsched_py.data``.
"""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from msgspec.structs import replace

from batsched_py.blame import naming
from batsched_py.decision.process import Ask, DecisionProcess
from batsched_py.errors import InputError
from batsched_py.ledger.effects import Effect, RegisteredJob, RejectedJob
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.plugins import Registry
from batsched_py.protocol.events import Event
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.schedulers.cluster import Cluster

try:
    from time import thread_time
except ImportError:  # Python in a browser has one thread
    from time import process_time as thread_time

#: Begins a file, by its name and its first line, and gives what writes to it.
Open = Callable[[str, str], Callable[[str], object]]

T = TypeVar("T")

_NAME = r"[A-Za-z][A-Za-z0-9_-]*"


class Monitor:
    """Hears what happens in a simulation, and changes nothing; a subclass has the methods that it needs.

    What happens is told at once. What was decided is told when the policy and the users have decided all that
    is to be done at an instant, in the order of their decisions.
    """

    name: ClassVar[str]
    """What it is called; without it, as its class in small letters."""
    columns: ClassVar[Sequence[str]] = ()
    """The columns of ``PREFIX_monitor_NAME.csv``, if it writes one."""

    _write: Callable[[str], object] | None = None

    def write(self, *values: object) -> None:
        """Write a line of its file, with a value for each column; without files, nothing is written."""
        if self._write is not None:
            self._write(",".join(map(str, values)) + "\n")

    def begins(self, cluster: Cluster) -> None:
        """The simulation begins."""

    def submitted(self, job: Job, now: float) -> None:
        """A job was submitted."""

    def started(self, running: RunningJob, now: float) -> None:
        """A job was started."""

    def rejected(self, job: Job, now: float) -> None:
        """A job was rejected."""

    def ended(self, ended: RunningJob, state: JobState, now: float) -> None:
        """A job has left its hosts."""

    def happened(self, event: Event) -> None:
        """Anything else has happened: hosts went, came back or changed their power state, a call came."""

    def decided(self, decision: Effect, now: float) -> None:
        """Anything else was decided: a job was killed or resized, hosts were switched, a call is wanted."""

    def settled(self, cluster: Cluster) -> None:
        """All that is to be done at an instant is decided; so things stand until something happens."""


class AdditionalData(ABC):
    """A number that is computed over time: ``cluster.outside.data[name]`` for policies.

    It is computed whenever something has happened, before the policy is asked. Each change is written to
    ``PREFIX_data.csv``, which metrics see as ``outcome.data``.
    """

    name: ClassVar[str]
    """What it is called; without it, as its class in small letters."""

    def begin(self, cluster: Cluster) -> None:  # noqa: B027
        """Prepare; called once, before any job is submitted."""

    def settled(self, cluster: Cluster) -> None:  # noqa: B027
        """All that is to be done at an instant is decided; so things stand until something happens."""

    @abstractmethod
    def measure(self, cluster: Cluster) -> float:
        """Its value now; ``cluster`` is what policies see, to look at only."""


MONITORS = Registry[Monitor]("monitor", Monitor, package=None, group="batsched_py.monitors")
DATA = Registry[AdditionalData](
    "kind of data",
    AdditionalData,  # type: ignore[type-abstract]
    package=None,
    group="batsched_py.data",
)

#: How the file of additional data begins.
DATA_HEADER = "time,name,value\n"


def name_of(observer: Monitor | AdditionalData) -> str:
    """What an observer is called."""
    name = str(getattr(observer, "name", type(observer).__name__.lower()))
    if not re.fullmatch(_NAME, name):
        raise InputError(
            f"the name of a monitor or of data is made of letters, digits, _ and -, not {name!r}"
        )
    return name


def _by_name(observers: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in observers:
        if (name := name_of(each)) in found:
            raise InputError(f"two are called {name!r}; give one of them another name")
        found[name] = each
    return found


class ObservedProcess(DecisionProcess):
    """A decision process that lets others look on."""

    def __init__(
        self,
        *arguments: Any,
        monitors: Sequence[Monitor] = (),
        data: Sequence[AdditionalData] = (),
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._monitors: dict[str, Monitor] = _by_name(monitors)
        self._data: dict[str, AdditionalData] = _by_name(data)
        self._values: dict[str, float] = {}
        self._write: Callable[[str], object] | None = None
        if self._data:
            self.outlook = self._known(self.outlook)

    def _known(self, before: Callable[[Sequence[Host]], Known] | None) -> Callable[[Sequence[Host]], Known]:
        """What is known of outside, with the data."""

        def outlook(hosts: Sequence[Host]) -> Known:
            known = NOTHING_KNOWN if before is None else before(hosts)
            return replace(known, data=MappingProxyType(self._values))

        return outlook

    def record(self, open_file: Open) -> None:
        """Write the data, and what monitors write, to files from now on."""
        if self._data:
            self._write = open_file("data", DATA_HEADER)
        for name, monitor in self._monitors.items():
            if monitor.columns:
                monitor._write = open_file(f"monitor_{name}", ",".join(monitor.columns) + "\n")

    def begin(self, cluster: Cluster) -> None:
        """Let all of them see the cluster for the first time, and then the policy."""
        self.cluster = cluster
        for name, data in self._data.items():
            self._call(f"data {name!r}", data.begin, cluster)
        self._measure(0.0)
        self._tell("begins", cluster)
        super().begin(cluster)

    def job_submitted(self, job: Job, now: float) -> None:
        """A job was submitted."""
        self._tell("submitted", job, now)
        super().job_submitted(job, now)

    def job_ended(self, job_id: str, state: JobState, return_code: int, now: float) -> None:
        """A job has left its hosts."""
        ended = self.cluster.running.get(job_id)
        super().job_ended(job_id, state, return_code, now)
        if ended is not None:
            self._tell("ended", ended, state, now)

    def happened(self, event: Event) -> None:
        """Anything else has happened."""
        super().happened(event)
        self._tell("happened", event)

    def turns(self, now: float) -> Generator[Cluster, bool | None, list[Effect]]:
        """What is to be done now; each turn of the policy is left to the caller."""
        self._measure(now)
        return self._told((yield from super().turns(now)), now)

    def _measure(self, now: float) -> None:
        """Compute the data anew."""
        if self._data:
            self.cluster._go_to(now + self.scheduling_delay)
        for name, data in self._data.items():
            value = self._call(f"data {name!r}", lambda data: float(data.measure(self.cluster)), data)
            if not isfinite(value):
                raise InputError(f"data {name!r} gives {value} at time {now:g}, which is no finite number")
            if self._values.get(name) != value:
                self._values[name] = value
                if self._write is not None:
                    self._write(f"{now:.6f},{name},{value!r}\n")

    def _told(self, effects: list[Effect], now: float) -> list[Effect]:
        """What was decided, after the monitors have heard it."""
        for effect in effects if self._monitors else ():
            match effect:
                case RunningJob():
                    self._tell("started", effect, now)
                case RejectedJob():
                    self._tell("rejected", effect.job, now)
                case RegisteredJob():
                    self._tell("submitted", effect.job, now)
                case _:
                    self._tell("decided", effect, now)
        self._tell("settled", self.cluster)
        for name, data in self._data.items():
            self._call(f"data {name!r}", data.settled, self.cluster)
        return effects

    def _tell(self, what: str, *about: object) -> None:
        for name, monitor in self._monitors.items():
            self._call(f"monitor {name!r}", getattr(monitor, what), *about)

    def _call(self, who: str, method: Callable[..., T], *about: object) -> T:
        """Call somebody who may look on, but must not decide anything."""
        nb_decided = len(self.cluster._decisions)
        with naming(who):
            value = method(*about)
        if len(self.cluster._decisions) != nb_decided:
            raise InputError(f"{who} has decided something at time {self.cluster.now:g}; it may only look on")
        return value


#: How a file of measurements begins.
DECISIONS_HEADER = "time,queue,decision_seconds,other_seconds,memory_bytes\n"


def measuring(write: Callable[[str], object], ask: Ask) -> Ask:
    """Ask a policy as before, and write what each decision takes, a line each.

    Such figures are never the same twice. So they go into a file of their own, which is written only if
    somebody asks for it; all other files stay as they are.

    The line has the simulated time, how many jobs waited then, the processor seconds of the decision, those
    of all else since the decision before, and the bytes of memory that the process has afterwards.
    """
    last = thread_time()

    def measured(cluster: Cluster) -> None:
        nonlocal last
        waiting = len(cluster.queue)
        begin = thread_time()
        try:
            ask(cluster)
        finally:
            end = thread_time()
            seconds = f"{end - begin:.9f},{begin - last:.9f}"
            write(f"{cluster.now:.6f},{waiting},{seconds},{memory_in_use()}\n")
            last = thread_time()

    return measured


def memory_in_use() -> int:
    """The bytes of memory that this process has; where no system tells, the most that it ever had."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read(200).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
