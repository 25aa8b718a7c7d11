"""What time it is, and what is going to happen.

Besides the actions that the simulation itself puts down, these are the jobs of workload files, each at its
time, and what happens from outside: machines that go and come back, and whatever else an event file tells.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush, merge
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.events import Event, ExternalEvent, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, to_tick
from batsched_py.workload.model import Workload, as_jobs

Action = Callable[[Any], None]

#: SimGrid ends a sleep, a timeout or a latency that has less than this left (``surf/precision``) ...
UNNOTICED = 1e-9
#: ... and a task of which less than this share is left (that, times ``maxmin/precision``).
UNNOTICED_SHARE = 1e-14
#: No longer time is looked at for either.
LONGEST_UNNOTICED = 1e-8


class Agenda:
    """The clock and the future actions. Those of one instant happen in the order in which they were put down.

    A *notice* is an action that waits until everything else of its instant has happened and has been told.
    """

    def __init__(self) -> None:
        self.clock = 0.0
        self.now = 0.0
        """The clock as it is told."""
        self.heap: list[tuple[float, int, int, Any, Any]] = []
        """Time, 1 for a notice, number, action and its argument; the first is next.

        Code that goes through the heap by itself may put down other things than actions.
        """
        self.count = 0
        """The number of the last action that was put down."""
        self.cancelled: set[int] = set()

    def __len__(self) -> int:
        return len(self.heap)

    def at(self, time: float, action: Action, argument: Any = None) -> int:
        """Put an action down; the number it gets, which is never 0, is what :meth:`cancel` wants."""
        self.count += 1
        heappush(self.heap, (time, 0, self.count, action, argument))
        return self.count

    def reserve(self) -> int:
        """A number for actions of which one at a time is put down, by :meth:`in_turn`."""
        self.count += 1
        return self.count

    def in_turn(self, number: int, time: float, action: Action, argument: Any, is_notice: bool) -> None:
        """Put an action or a notice down as if that had been done when its number was reserved."""
        heappush(self.heap, (time, int(is_notice), number, action, argument))

    def notice(self, time: float, action: Action, argument: Any = None) -> None:
        """Put down an action that comes after all others of its instant."""
        self.count += 1
        heappush(self.heap, (time, 1, self.count, action, argument))

    def cancel(self, number: int) -> None:
        """Strike an action out, as if it had never been put down."""
        self.cancelled.add(number)
        self.drop_cancelled()

    def instant_is_over(self) -> bool:
        """Whether nothing but notices is left to happen now."""
        heap = self.heap
        return not heap or heap[0][0] > self.clock or heap[0][1] == 1

    def give_notices(self) -> None:
        """Let the notices of this instant happen, when nothing else is left of it."""
        while self.heap and self.heap[0][0] <= self.clock and self.heap[0][1] == 1:
            self.happen()

    def happen(self) -> None:
        """Go to the next action's time and let it happen."""
        time, _, _, action, argument = heappop(self.heap)
        if self.cancelled:
            self.drop_cancelled()
        if time != self.clock:
            self.clock = time
            self.now = time if time.is_integer() else to_tick(time)
        action(argument)

    def draw_near(self, within: Callable[[Action, Any, float], float]) -> None:
        """Let what comes so shortly after the next action that SimGrid does not notice happen with it.

        ``within`` says how short that is for an action, by its argument and its time.
        """
        heap = self.heap
        first = heap[0][0]
        near: list[tuple[float, int, int, Any, Any]] = []
        while heap and heap[0][0] < first + LONGEST_UNNOTICED:
            near.append(heappop(heap))
        for time, is_notice, number, action, argument in near:
            if 0.0 < time - first < within(action, argument, time):
                time = first
            heappush(heap, (time, is_notice, number, action, argument))
        self.drop_cancelled()

    def drop_cancelled(self) -> None:
        """Make the first one that is not struck out the next."""
        heap, cancelled = self.heap, self.cancelled
        while heap and heap[0][2] in cancelled:
            cancelled.remove(heappop(heap)[2])


class Submitter:
    """Submits static jobs; those of one instant workload by workload, in the string order of their ids.

    It holds none of them but the next ones, so a workload may be larger than memory.

    Jobs are handed over by a message, which ``send`` delivers now or later. As in Batsim, the submitter waits
    for that, and sleeps afterwards as if it had not: the next jobs come that much later.
    """

    def __init__(
        self,
        workloads: Sequence[Workload],
        agenda: Agenda,
        submit: Callable[[Job], None],
        done: Callable[[None], None],
        send: Callable[[Callable[[], None]], None] = lambda hand_over: hand_over(),
    ) -> None:
        every = [as_jobs(workload.jobs) for workload in workloads]
        self._workloads = {workload.name: jobs for workload, jobs in zip(workloads, every, strict=True)}
        self._ranks = {workload.name: rank for rank, workload in enumerate(workloads)}
        first, *others = [jobs.in_submission_order() for jobs in every]
        self._jobs = merge(first, *others, key=attrgetter("submission_time")) if others else first
        self._next = next(self._jobs, None)
        self._last: Job | None = None
        self._agenda = agenda
        self._submit = submit
        self._done = done
        self._send = send
        self.begins: Callable[[None], None] | None = None
        """Is called when the time of the first job has come."""
        send(lambda: self._plan(agenda.clock, 0.0))

    def is_to_come(self, job_id: str) -> bool:
        """Whether a job is yet to be submitted."""
        jobs = self._workloads.get(job_id.partition("!")[0])
        job = None if jobs is None else jobs.find(job_id)
        return job is not None and (self._last is None or self._turn(job) > self._turn(self._last))

    def _turn(self, job: Job) -> tuple[float, int, Any]:
        """What the order of submissions goes by."""
        return job.submission_time, self._ranks[job.workload], self._workloads[job.workload].tie(job)

    def _plan(self, now: float, late: float) -> None:
        if self._next is not None:
            self._agenda.at(max(self._next.submission_time, now) + late, self._run)
        else:
            self._agenda.notice(self._agenda.clock, self._done)

    def _run(self, _: None) -> None:
        if self.begins is not None:
            self.begins(None)
            self.begins = None
        self._send(partial(self._hand_over, self._agenda.clock))

    def _hand_over(self, sent: float) -> None:
        job, submit, jobs = self._next, self._submit, self._jobs
        assert job is not None
        time = job.submission_time
        while job is not None and job.submission_time <= max(time, sent):
            self._last = job
            submit(job)
            job = next(jobs, None)
        self._next = job
        self._plan(time, self._agenda.clock - sent)


def read_events(path: str | Path, forward_unknown: bool = False) -> list[Event]:
    """The events in a file of Batsim's: a JSON object a line, in any order.

    Types other than ``machine_available`` and ``machine_unavailable`` are refused, or forwarded as they are.
    """
    events = _each_line(path, lambda line, number: _read_event(line, forward_unknown))
    return sorted(events, key=lambda event: (event.time, _ORDER.index(type(event))))


def read_generic_events(path: str | Path, name: str) -> list[Event]:
    """The events in a file of Batsim 5's: each is of the type ``generic``, with a text as its ``data``.

    They are called by the ``name`` of their list and their number in it.
    """
    events = _each_line(path, lambda line, number: _read_generic(line, f"{name}!{number}"))
    return sorted(events, key=lambda event: event.time)


def as_generic_events(events: Sequence[Event]) -> str:
    """The same events in a file for Batsim 5, whose texts are the objects that a Batsim 4 knows."""
    lines = [{"timestamp": event.time, "type": "generic", "data": _text(event)} for event in events]
    return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)


def _text(event: Event) -> str:
    match event:
        case HostsAvailable(hosts=hosts) | HostsUnavailable(hosts=hosts):
            return msgspec.json.encode({"type": _TYPES[type(event)], "resources": str(hosts)}).decode()
        case ExternalEvent(data={"type": "generic", "data": str(text)}):
            return text
        case ExternalEvent(data=data):
            return msgspec.json.encode(data).decode()
        case _:
            raise TypeError(f"{type(event).__name__} is no external event")


def _each_line(path: str | Path, read: Callable[[str, int], Event]) -> list[Event]:
    """What is read from each line that is not empty, by its text and by how many are before it."""
    try:
        lines = read_input(path).decode("utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: cannot read this event file ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: this event file is not UTF-8 text") from None
    events: list[Event] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                events.append(read(line, len(events)))
            except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    return events


_TYPES = {HostsAvailable: "machine_available", HostsUnavailable: "machine_unavailable"}

#: Of events at one time; Batsim sorts by type.
_ORDER: list[type[Event]] = [HostsAvailable, HostsUnavailable, ExternalEvent]


def _fields(line: str) -> tuple[dict[str, Any], float]:
    """The fields of an event, and its time."""
    fields = msgspec.json.decode(line)
    if not isinstance(fields, dict):
        raise ValueError("an event is a JSON object")
    time = fields.get("timestamp")
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not time >= 0:
        raise ValueError(f"`timestamp` must be a number that is not negative, not {time!r}")
    return fields, float(time)


def _read_generic(line: str, name: str) -> Event:
    fields, time = _fields(line)
    kind, text = fields.get("type"), fields.get("data")
    if kind != "generic":
        raise ValueError(
            f"type {kind!r} is not generic, the only one that a Batsim 5 knows; "
            "put such an event as a JSON text into the `data` of a generic one"
        )
    if not isinstance(text, str):
        raise ValueError(f"`data` must be a text, not {text!r}")
    return ExternalEvent({"type": kind, "data": text}, name, time=time)


def _read_event(line: str, forward_unknown: bool) -> Event:
    fields, time = _fields(line)
    match fields.get("type"):
        case "machine_available" | "machine_unavailable" as kind:
            resources = fields.get("resources")
            if not isinstance(resources, str):
                raise ValueError(f"`resources` must be a text like '0-3 7', not {resources!r}")
            event = HostsAvailable if kind == "machine_available" else HostsUnavailable
            return event(HostSet.parse(resources), time=time)
        case str(other):
            if not forward_unknown:
                raise ValueError(
                    f"type {other!r} is neither machine_available nor machine_unavailable; "
                    "use --forward-unknown-events to pass it on to the decision process"
                )
            return ExternalEvent(fields, time=time)
        case other:
            raise ValueError(f"`type` must be a text, not {other!r}")


def in_order(lists: Sequence[Sequence[Event]], nb_hosts: int) -> list[Event]:
    """The events of all lists in the order of time; those about hosts that do not exist are refused."""
    events = sorted(chain(*lists), key=lambda event: event.time)
    for event in events:
        if isinstance(event, HostsAvailable | HostsUnavailable) and event.hosts.mask >> nb_hosts:
            beyond = event.hosts - HostSet.range(nb_hosts)
            raise InputError(f"the external event at {event.time:g} names unknown hosts {beyond}")
    return events


class Outside:
    """Lets the events of all lists, and failures, occur, each at its time; it holds only the next failure."""

    def __init__(
        self,
        lists: Sequence[Sequence[Event]],
        failures: Iterator[Event],
        nb_hosts: int,
        agenda: Agenda,
        occur: Callable[[Event], None],
        done: Callable[[None], None],
    ) -> None:
        events = in_order(lists, nb_hosts)
        for event in events:
            agenda.at(event.time, occur, event)
        self._agenda, self._occur, self._done = agenda, occur, done
        self._failures, self._turn = failures, agenda.reserve()
        self._last = events[-1].time if events else 0.0
        self._await_failure()

    def _await_failure(self) -> None:
        event, turn = next(self._failures, None), self._turn
        if event is None:
            return self._agenda.in_turn(turn, self._last, self._done, None, is_notice=True)
        self._last = max(self._last, event.time)
        self._agenda.in_turn(turn, event.time, self._fail, event, is_notice=False)

    def _fail(self, event: Event) -> None:
        self._await_failure()
        self._occur(event)
