"""The broker: speaks for all users, however many there are, and checks what they do before it counts."""

from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from math import inf, isnan
from operator import attrgetter, index
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.blame import is_fault, told
from batsched_py.errors import PolicyError
from batsched_py.protocol.jobs import Job, JobState, to_tick
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import harmless, shown
from batsched_py.users import Action, Remark, Submission, User, Withdrawal

#: No number of hosts is so large.
_BEYOND = 1 << 63


def _checked(action: object) -> Action:
    """The same action, if all that it is made of is of the right kind."""
    match action:
        case Submission(job=job, profile=profile, note=note, decided=decided):
            if not isinstance(profile, Profile):
                raise _wrong("profile", "a Profile", profile)
            return Submission(_checked_job(job), profile, _text("note", note), _number("decided", decided))
        case Withdrawal(job_id=job_id, note=note):
            return Withdrawal(_text("job_id", job_id), _text("note", note))
        case Remark(job_id=job_id, note=note):
            return Remark(_text("job_id", job_id), _text("note", note))
    raise TypeError(f"a user returns submissions, withdrawals and remarks, not {shown(action)}")


def _checked_job(job: Any) -> Job:
    if not isinstance(job, Job):
        raise _wrong("job", "a Job", job)
    if _text("job.id", job.id).count("!") != 1:
        raise ValueError(f"job.id: {shown(job.id)} is not of the form WORKLOAD!NAME")
    _text("job.profile", job.profile)
    if not isinstance(job.extra, dict):
        raise _wrong("job.extra", "a dictionary", job.extra)
    walltime = _number("job.walltime", job.walltime)
    submission = _number("job.submission_time", job.submission_time)
    try:
        size = index(job.size)
    except TypeError:
        raise _wrong("job.size", "a number of hosts", job.size) from None
    if not -_BEYOND <= size < _BEYOND:
        raise ValueError(f"job.size: no machine has {shown(size)} hosts")
    if type(job.size) is int and type(job.walltime) is type(job.submission_time) is float:
        return job
    return replace(job, size=size, walltime=walltime, submission_time=submission)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(field, "a text", value)
    return value


def _number(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(field, "a number", value) from None
    if isnan(number):
        raise ValueError(f"{field}: a number is expected, not nan")
    return number


def _wrong(field: str, kind: str, value: object) -> TypeError:
    return TypeError(f"{field}: {kind} is expected, not {shown(value)}")


class _Client(Struct, gc=False, eq=False):
    """A user who may still act."""

    number: int
    user: User
    hears_starts: bool
    """Whether it wants to know when its jobs start."""
    wish: float = inf
    """When it wants to act."""
    wanted: float = inf
    """The same on the scale of simulators; the wish in the plan that is valid."""
    nb_outstanding: int = 0
    """How many jobs it has that may still end."""


#: What stands for a job that is no user's.
_NOBODY: tuple[None, None] = (None, None)

_DECIDED = attrgetter("decided")


class Broker:
    """Merges users, tells each of the starts and ends of its own jobs, and knows when to be woken next.

    Simulators tell times to six decimals. A user's time has come at the first ``now`` that is not before it
    on that scale; the user itself is then given a time that is not before its own. A user who will never act
    again is forgotten, and ``on_leave`` is told.
    """

    def __init__(self, users: Iterable[User] = (), on_leave: Callable[[User], None] | None = None) -> None:
        self._on_leave = on_leave
        self._clients: dict[int, _Client] = {}
        self._count = 0
        """How many users there have been."""
        self._plan: list[tuple[float, int]] = []
        """When which user wants to act, as a heap; wishes that a user has thought better of stay in it."""
        self._outstanding: dict[str, tuple[_Client, Job]] = {}
        """The jobs that may still end, with their user."""
        self._withdrawn: set[str] = set()
        """Those of them that their users have withdrawn."""
        self._calls: list[float] = []
        """When calls will come that were asked for, as a heap."""
        self.next_time = inf
        """When somebody wants to act next; infinite for nobody."""
        self.hears_starts = False
        """Whether anybody wants to know when jobs start."""
        for user in users:
            self.add(user)

    def add(self, user: User, now: float = 0.0) -> None:
        """One more user from now on."""
        hears = hears_starts(user)
        self.hears_starts = self.hears_starts or hears
        self._clients[self._count] = client = _Client(self._count, user, hears)
        self._count += 1
        self._ask(client, now)

    @property
    def done(self) -> bool:
        """Whether nobody will ever act again."""
        return not self._outstanding and self.next_time == inf

    def actions(self, now: float) -> list[Action]:
        """What all users do now: what they submit, then what they withdraw and remark.

        Of the submissions, what was decided first comes first, then user by user.
        """
        others: list[Action] = []
        submissions: list[Submission] = []
        while self.next_time <= now:
            client = self._clients[heappop(self._plan)[1]]
            done = actions_of(client.user, max(now, client.wish), now)
            for action in done:
                if isinstance(action, Submission):
                    self._outstanding[action.job.id] = (client, action.job)
                    client.nb_outstanding += 1
                    submissions.append(action)
                else:
                    self._check_own(client, action, now)
                    others.append(action)
            client.wanted = -inf
            self._ask(client, now)
            if not done and client.wanted <= now:
                name = name_of(client.user)
                raise PolicyError(f"{name} wants to submit at time {now:g}, yet submits nothing")
        if len(submissions) > 1:
            submissions.sort(key=_DECIDED)
        return [*submissions, *others]

    def awaits(self, job_id: str) -> bool:
        """Whether a job is a user's, and may still end."""
        return job_id in self._outstanding

    def job_started(self, job_id: str, now: float) -> None:
        """Tell the user whose job it is, if it is a user's and the user wants to know."""
        client, job = self._outstanding.get(job_id, _NOBODY)
        if client is None or job is None or not client.hears_starts:
            return
        try:
            client.user.job_started(job, now)
        except BaseException as error:
            blame(client.user, error, now, "job_started")
        self._ask(client, now)

    def job_ended(self, job_id: str, state: JobState, now: float) -> None:
        """Tell the user whose job it was, if it was a user's."""
        client, job = self._outstanding.pop(job_id, _NOBODY)
        if client is None or job is None:
            return
        self._withdrawn.discard(job_id)
        client.nb_outstanding -= 1
        try:
            client.user.job_ended(job, state, now)
        except BaseException as error:
            blame(client.user, error, now, "job_ended")
        self._ask(client, now)

    def call_to_ask(self, now: float) -> float | None:
        """When a call is needed that none was asked for yet; exactly one that matters is ever pending.

        A call cannot be taken back. One that comes too early because plans have changed does no harm.
        """
        while self._calls and self._calls[0] <= now:
            heappop(self._calls)
        time = self.next_time
        if time == inf or (self._calls and self._calls[0] <= time):
            return None
        heappush(self._calls, time)
        return time

    def _ask(self, client: _Client, now: float) -> None:
        """Ask a user for its next time, and put that down if it is new."""
        try:
            time = next_time_of(client.user)
        except BaseException as error:
            blame(client.user, error, now, "next_time")
        if isnan(time) or time == -inf:
            raise PolicyError(f"{name_of(client.user)} wants to submit at time {time:g}, which never comes")
        client.wish = time
        if time != inf:
            time = to_tick(time)
        if time != client.wanted:
            client.wanted = time
            if time != inf:
                heappush(self._plan, (time, client.number))
            plan, clients = self._plan, self._clients  # less wishes that users have thought better of
            while plan and ((other := clients.get(plan[0][1])) is None or other.wanted != plan[0][0]):
                heappop(plan)
            self.next_time = plan[0][0] if plan else inf
        if time == inf and not client.nb_outstanding:
            del self._clients[client.number]
            if self._on_leave is not None:
                self._on_leave(client.user)

    def _check_own(self, client: _Client, action: Withdrawal | Remark, now: float) -> None:
        """A user can only withdraw and remark on jobs of its own that are not over."""
        job_id, who = action.job_id, f"{name_of(client.user)} at time {now:g}"
        if self._outstanding.get(job_id, _NOBODY)[0] is not client:
            deed = f"{type(action).__name__.lower()} of job {job_id}"
            raise PolicyError(f"{who}: {deed}, which is not one of its own that waits or runs")
        if isinstance(action, Withdrawal):
            if job_id in self._withdrawn:
                raise PolicyError(f"{who}: withdraws job {job_id} a second time")
            self._withdrawn.add(job_id)


def name_of(user: User) -> str:
    """Which user it is, in one line."""
    try:
        return harmless(f"user {user.name}")
    except Exception:
        return f"a user of kind {type(user).__name__}"


def hears_starts(user: User) -> bool:
    """Whether a user wants to know when its jobs start."""
    if not isinstance(user, User):
        raise PolicyError(f"{shown(user)} is not a user: users are objects of subclasses of User")
    return type(user).job_started is not User.job_started


def next_time_of(user: User) -> float:
    """When a user wants to act next."""
    return float(user.next_time())


def actions_of(user: User, time: float, now: float) -> list[Action]:
    """What a user does at its time, checked; it is ``now`` on the scale of simulators."""
    try:
        done: Any = user.submit(time)
        if not isinstance(done, Iterable):
            raise TypeError(f"submit returns a list of actions, not {shown(done)}")
        return [_checked(action) for action in done]
    except BaseException as error:
        blame(user, error, now, "submit")


def blame(user: User, error: BaseException, now: float, method: str) -> NoReturn:
    """Tell what a method of a user raised, or what was wrong with what it gave back, as the user's fault."""
    if not is_fault(error):
        raise error
    raise PolicyError(
        f"{name_of(user)} failed at time {now:g}: {told(error, getattr(type(user), method, None))}"
    ) from error
