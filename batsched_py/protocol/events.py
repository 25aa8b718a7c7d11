"""The conversation between a simulator and a decision process, as typed values.

A simulator sends a :class:`Message` of *happenings*, a decision process answers with a :class:`Message` of
*decisions*. How they are encoded is up to a :class:`~batsched_py.protocol.dialect.Dialect`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import NODE_PROPERTIES, Host, Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.rules import Settings as Settings
from batsched_py.protocol.shown import harmless


class Event(Struct, gc=False, kw_only=True):
    """Something that happened, or is to happen, at a time."""

    time: float = 0.0
    extra: dict[str, Any] | None = None
    """Fields that the dialect does not know; they are kept, not interpreted."""


class Unknown(Event):
    """An event whose type the dialect does not know."""

    type: str
    data: Any


class Message(Struct, gc=False):
    """All events that one side sends at once; ``now`` is the time at which it sends them."""

    now: float
    events: list[Event]


# --- happenings: simulator -> decision process ---------------------------------------------------


class SimulationBegins(Event):
    """The first event: the platform, the workloads, the settings."""

    hosts: list[Host]
    storages: list[Host] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    workloads: Mapping[str, str] = field(default_factory=dict)
    profiles: Mapping[str, Mapping[str, Profile]] = field(default_factory=dict)
    speeds: list[float] | None = None
    """Of the hosts in flop/s, if the simulator gives them; Batsim 4 does not."""
    switches: list[str] | None = None
    """Of the hosts, by name, if the simulator tells its network; no message does."""

    @property
    def has_nodes(self) -> bool:
        """Whether hosts are more than so many equal ones: cores of nodes, or with features or partitions."""
        return any(name in host.properties for host in self.hosts for name in NODE_PROPERTIES)


class SimulationEnds(Event):
    """The last event."""


class JobSubmitted(Event):
    """A job entered the queue."""

    job: Job
    profile: Profile | None = None


class JobCompleted(Event):
    """A job left its hosts, in one of the completed states."""

    job_id: str
    state: JobState
    hosts: HostSet
    return_code: int = 0


class Progress(Struct):
    """The progress of a killed job; a composed profile nests the progress of its current task."""

    profile: str
    done: float = 0.0
    """Fraction of a simple profile that was executed."""
    task_index: int | None = None
    """Which task of a composed profile it was, counted through all repetitions."""
    task: Progress | None = None
    nb_tasks: int | None = None
    """How many tasks one repetition has, if that is known."""


class JobsKilled(Event):
    """Answer to :class:`KillJobs`; jobs that had ended by themselves have no progress."""

    job_ids: list[str]
    progress: dict[str, Progress]


class HostsStateChanged(Event):
    """Answer to :class:`SetHostsState`, when all its hosts are done."""

    hosts: HostSet
    pstate: int


class HostsPStateChanged(HostsStateChanged):
    """Answer to :class:`ChangeHostsPState`."""


class RequestedCall(Event):
    """Answer to :class:`CallMeLater`."""

    at: float = 0.0
    """When it was asked for, if the message says which call it is."""


class EnergyAnswer(Event):
    """Answer to :class:`QueryEnergy`: joules consumed so far."""

    joules: float


class WaitingTimeQuery(Event):
    """How long would this job wait?"""

    job: Job


class NoMoreStaticJobs(Event):
    """Every job of the workload files has been submitted."""


class NoMoreExternalEvents(Event):
    """Every event of the event files has occurred."""


class HostsUnavailable(Event):
    """Hosts became unavailable; jobs on them continue."""

    hosts: HostSet


class HostsAvailable(Event):
    """Hosts are available again."""

    hosts: HostSet


class ExternalEvent(Event):
    """An event of an event file that the simulator itself does not know."""

    data: dict[str, Any]
    id: str = ""
    """Its name, if the simulator gives it one."""


class JobSaid(Event):
    """A message from a running job."""

    job_id: str
    message: dict[str, Any]


# --- decisions: decision process -> simulator ----------------------------------------------------


class IoJob(Struct, frozen=True):
    """Bytes that are moved while a job runs, on hosts of their own."""

    profile_name: str
    hosts: HostSet
    profile: Profile | None = None
    """The profile of that name, if it is new."""


class ExecuteJob(Event):
    """Run a waiting job on these hosts."""

    job_id: str
    hosts: HostSet
    mapping: list[int] | None = None
    """For each executor of the job, which of the hosts (by position) it runs on."""
    storage_mapping: dict[str, int] | None = None
    io_job: IoJob | None = None


class RejectJob(Event):
    """Refuse a waiting job for good."""

    job_id: str


class KillJobs(Event):
    """Stop running jobs."""

    job_ids: list[str]


class CallMeLater(Event):
    """Ask for a call at a time."""

    at: float


class CallMeAtOnce(Event):
    """Ask for a call at the time of this event."""


class RegisterProfile(Event):
    """Make a profile known, for jobs to be registered."""

    workload: str
    name: str
    profile: Profile


class RegisterJob(Event):
    """Submit a job that is in no workload file."""

    job: Job


class RegistrationFinished(Event):
    """No more jobs will be registered."""


class ContinueRegistration(Event):
    """More jobs may be registered again, from the next reply on."""


class SetHostsState(Event):
    """Put hosts into a power state; to fall asleep and to wake up takes them time."""

    hosts: HostSet
    pstate: int


class ChangeHostsPState(SetHostsState):
    """Put hosts into a power state at once, even into one in which they sleep, or out of it."""


class SetJobMetadata(Event):
    """Leave a note in the job's row of the results."""

    job_id: str
    metadata: str


class ChangeJobState(Event):
    """Set the state of a job by hand (Batsim 4 accepts it, and crashes in most cases)."""

    job_id: str
    state: JobState
    kill_reason: str | None = None


class QueryEnergy(Event):
    """Ask for the energy consumed so far."""


class WaitingTimeAnswer(Event):
    """Answer to :class:`WaitingTimeQuery`."""

    job_id: str
    seconds: float


class TellJob(Event):
    """A message to a running job."""

    job_id: str
    message: str


#: What the type of an event begins with that stops a simulator.
STOP_MARK = "THE_DECISION_PROCESS_FAILED:"

#: How many characters of a reason are sent.
LONGEST = 500


def stop(now: float, reason: str) -> Message:
    """The reply with which a decision process that cannot continue makes a simulator stop, and print why.

    The protocol has no event for this, and a Batsim waits for a reply without a limit. But every Batsim
    aborts when it receives an event of an unknown type, and prints that type. So the reason is sent as such a
    type. A Batsim 5 prints only the first word of it.

    >>> stop(5.0, "the policy\\nfailed").events[0].type
    'THE_DECISION_PROCESS_FAILED: the policy failed'
    """
    return Message(now, [Unknown(f"{STOP_MARK} {harmless(reason)[:LONGEST]}", {}, time=now)])


def as_one_word(kind: str) -> str:
    """The type of such an event for a Batsim that prints only its first word.

    Spaces that do not break a line look alike; :func:`reason_to_stop` reads them as spaces.
    """
    return kind.replace(" ", "\N{NO-BREAK SPACE}") if kind.startswith(STOP_MARK) else kind


def reason_to_stop(reply: Message) -> str | None:
    """Why a simulator is to stop, if it is."""
    for event in reply.events:
        if isinstance(event, Unknown) and event.type.startswith(STOP_MARK):
            return harmless(event.type.removeprefix(STOP_MARK))
    return None
