"""Who submits: what every user is, the users that a log names, and behaviours around behaviours.

A user says when it acts next and hears when its jobs start and end; it never sees a scheduler.
To write a behaviour, subclass :class:`Behaviour` and :class:`User` in a file of your own (see ``rigid.py``).
``patience(think-time)`` are users with think times who may lose patience.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.blame import told
from batsched_py.errors import BatschedError, PolicyError
from batsched_py.plugins import LayeredRegistry
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import shown
from batsched_py.workload.dependencies import among_themselves
from batsched_py.workload.model import Workload, as_jobs


class Submission(Struct, gc=False, eq=False):
    """A job that a user hands in."""

    job: Job
    """The job; its submission time becomes the time at which it is handed in."""
    profile: Profile
    """What the job does. Jobs of one workload that name the same profile do the same."""
    note: str = ""
    """What shall stand in the column ``metadata`` of the results."""
    decided: float = 0.0
    """When the user made up its mind; of jobs that are handed in at once, those decided on first go first."""


class Withdrawal(Struct, gc=False, eq=False):
    """A job that a user takes back: one that waits is rejected, one that runs is killed."""

    job_id: str
    note: str = ""
    """What shall stand in the column ``metadata`` from now on; when empty, what stands there stays.

    To add to what stands there, make it by :meth:`WrappedUser.withdraw`.
    """


class Remark(Struct, gc=False, eq=False):
    """What shall stand in the column ``metadata`` from now on about a job that waits or runs."""

    job_id: str
    note: str


#: What a user may do when its time has come.
Action = Submission | Withdrawal | Remark


class User(ABC):
    """Somebody who submits jobs and waits for them.

    A user is told of the starts and ends of its own jobs, and called when it asked to be. So it is gone for
    good once it plans nothing and has no job that could still end.
    """

    name: str

    @abstractmethod
    def next_time(self) -> float:
        """When it wants to act next if none of its jobs starts or ends before; infinite for not at all."""

    @abstractmethod
    def submit(self, now: float) -> Sequence[Action]:
        """What it submits when the time has come, and which of its jobs it withdraws.

        Who only wanted to be woken does nothing, and has a later time from then on.
        """

    def job_started(self, job: Job, now: float) -> None:  # noqa: B027
        """Hear that one of its jobs starts at ``now``; most users do not care."""

    @abstractmethod
    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Hear that one of its jobs ended at ``now``: completed, failed, killed or rejected."""


class Behaviour(ABC):
    """A way in which the users of a workload submit its jobs.

    A subclass in a file of its own is all it takes. Options are dataclass fields, with their meaning in
    ``Annotated[..., Meta(description=...)]``; the first line of the docstring is what lists show.
    """

    name: ClassVar[str]
    """How the behaviour is called on the command line."""

    @abstractmethod
    def users(self, workload: Workload) -> list[User]:
        """New users for one simulation, who behave in this way."""

    def native_users(self) -> tuple[str, dict[str, Any]] | None:
        """Which users of the native engine do the same, with which options; None if there are none."""
        return None

    def learn(self, workload: Workload) -> None:  # noqa: B027
        """Learn from a whole log what its users have in common; asked for when they come one by one."""


class UsersOf:
    """The users of some workloads, who all behave in one way; made when somebody first looks at them."""

    def __init__(self, behaviour: Behaviour, workloads: Sequence[Workload]) -> None:
        self.behaviour = behaviour
        self.workloads = workloads

    def __iter__(self) -> Iterator[User]:
        for workload in self.workloads:
            try:
                yield from self.behaviour.users(workload)
            except BatschedError:
                raise
            except (Exception, SystemExit) as error:
                where = told(error, type(self.behaviour).users)
                name = shown(getattr(self.behaviour, "name", type(self.behaviour).__name__))
                raise PolicyError(f"users {name} failed before time 0: {where}") from error

    def __bool__(self) -> bool:
        return any(workload.jobs for workload in self.workloads)


class Wrapper(Behaviour):
    """A behaviour that changes what the users of another one do.

    A subclass asks :attr:`inner` for users, and hands on others who speak to these.
    """

    around: ClassVar[str] = "think-time"
    """What it is around when nothing is said."""
    outermost: ClassVar[bool] = False
    """Whether nothing can go around it."""
    inner: ClassVar[Behaviour]
    """What it is around; each instance has its own."""

    def learn(self, workload: Workload) -> None:
        """Let the users inside learn."""
        self.inner.learn(workload)


class WrappedUser(User):
    """Hands on what another user does and hears; a subclass changes some of it."""

    def __init__(self, user: User) -> None:
        self.name = user.name
        self.user = user
        self.waiting: dict[str, float] = {}
        """The jobs that were submitted and did not start, and since when they wait."""
        self._submitted: dict[str, Submission] = {}
        """Those that are not over, with what is noted about them."""

    def next_time(self) -> float:
        """When the user acts."""
        return self.user.next_time()

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does, if its time has come."""
        actions = self.user.submit(now) if self.user.next_time() <= now else ()
        for action in actions:
            if isinstance(action, Submission):
                self.waiting[action.job.id] = now
                self._submitted[action.job.id] = action
            elif action.note and (submitted := self._submitted.get(action.job_id)):
                submitted.note = action.note
        return actions

    def withdraw(self, job_id: str, note: str = "") -> Withdrawal:
        """Take back a job, which waits no longer, and add something to its note."""
        self.waiting.pop(job_id, None)
        return Withdrawal(job_id, self._added(job_id, note) if note else "")

    def remark(self, job_id: str, note: str) -> Remark:
        """Add something to the note of a job."""
        return Remark(job_id, self._added(job_id, note))

    def _added(self, job_id: str, note: str) -> str:
        """What is noted about a job, and this."""
        submitted = self._submitted.get(job_id)
        if submitted is None:
            return note
        submitted.note = f"{submitted.note} {note}".strip()
        return submitted.note

    def job_started(self, job: Job, now: float) -> None:
        """It waits no longer."""
        self.waiting.pop(job.id, None)
        self.user.job_started(job, now)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """It waits no longer, whether it had started or not."""
        self.waiting.pop(job.id, None)
        self._submitted.pop(job.id, None)
        self.user.job_ended(job, state, now)


class Behaviours(LayeredRegistry[Behaviour]):
    """The known behaviours, which may be named one around the other, as in ``outer(inner)``."""

    wrapper = Wrapper
    example = "patience(think-time)"


@dataclass(kw_only=True)
class NamedUsers(Behaviour):
    """A behaviour that needs to know whose a job is."""

    nameless: Annotated[
        Literal["left-out", "rigid"],
        Meta(description="What becomes of jobs whose user the log does not name."),
    ] = "left-out"

    def users(self, workload: Workload) -> list[User]:
        """Those of :meth:`named_users`, and one for all jobs without a user, if these are kept."""
        nobody, count = as_jobs(workload.jobs).by_user().get(None), len(workload.jobs)
        nameless = [] if nobody is None else sorted(nobody.tolist())
        if not nameless or (len(nameless) == count and self.nameless != "rigid"):
            return self.named_users(workload)
        named = part_of(workload, sorted(set(range(count)).difference(nameless)))
        if self.nameless == "rigid":
            from batsched_py.users.rigid import Rigid

            others = Rigid().users(part_of(workload, nameless))
            return self.named_users(named) + others if named.jobs else others
        text = "%s: left out because they name no user: %d of %d jobs (nameless=rigid keeps them)"
        logging.getLogger(__name__).warning(text, workload.path or workload.name, len(nameless), count)
        return self.named_users(replace(named, jobs=among_themselves(named.jobs)))

    @abstractmethod
    def named_users(self, workload: Workload) -> list[User]:
        """New users for one simulation of a workload in which each job has a user."""


def part_of(workload: Workload, places: list[int]) -> Workload:
    """The workload with the jobs in these places only."""
    finishes = workload.finishes
    return replace(
        workload,
        jobs=[workload.jobs[place] for place in places],
        finishes=None if finishes is None else [float(finishes[place]) for place in places],
    )


def one_by_one(workload: Workload) -> dict[str, Workload]:
    """The workload of each user, jobs in submission order; short names first, as numbers go."""
    places = {user: places for user, places in as_jobs(workload.jobs).by_user().items() if user is not None}
    return {
        user: part_of(workload, places[user].tolist())
        for user in sorted(places, key=lambda user: (len(user), user))
    }


class EachUser(NamedUsers, Wrapper):
    """A wrapper around each user of a log."""


#: The known behaviours.
USERS = Behaviours("user behaviour", Behaviour, __name__, "batsched_py.users")  # type: ignore[type-abstract]
