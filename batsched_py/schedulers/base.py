"""What every policy is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeVar

from msgspec import Meta

from batsched_py.protocol.events import SetJobMetadata
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.selection import NodeChoiceName, SelectionName

PENDING = "pending"
"""What the note of a job begins with that waited in the end."""

_Method = TypeVar("_Method", bound=Callable[..., object])


def in_library(what: str) -> Callable[[_Method], _Method]:
    """Say of a method of a policy that the library of the native engine does this in its place.

    A method that overrides it is called as usual.
    """

    def mark(method: _Method) -> _Method:
        method.__dict__["in_library"] = what
        return method

    return mark


@dataclass(kw_only=True)
class Scheduler(ABC):
    """A scheduling policy.

    A subclass in a file of its own is all it takes. Options are fields of a dataclass, with their meaning in
    ``Annotated[..., Meta(description=...)]``; the first line of the docstring is what lists show.
    """

    name: ClassVar[str]
    """How the policy is called on the command line."""

    only_starts_jobs: ClassVar[bool] = False
    """Whether all that the policy ever does is to start waiting jobs; then it is not asked if none fits."""

    reads_profiles: ClassVar[bool] = False
    """Whether the policy must know what jobs do; then a Batsim 5 is asked to send their profiles."""

    requeues: ClassVar[bool] = False
    """Whether the policy puts running jobs back into the queue; then users hand in all jobs."""

    narrows_the_machine: ClassVar[bool] = False
    """Whether the policy puts limits beside the machine, lets hosts sleep, counts on those that do, or keeps
    jobs from the queue; then the Python engine runs it."""

    stands_alone: ClassVar[bool] = False
    """Whether no other policy may be around it, because it heeds neither limits nor hosts that sleep."""

    chooses_sizes: ClassVar[bool] = False
    """Whether the policy chooses among the sizes of jobs that give several, the one that ends first."""

    uses_estimates: ClassVar[bool] = True
    """Whether it matters to the policy how long jobs are expected to run."""

    selection: Annotated[SelectionName, Meta(description="Which of the free hosts a job gets.")] = "lowest"
    nodes: Annotated[NodeChoiceName, Meta(description="Which nodes a job gets, on a machine of nodes.")] = (
        "first-fit"
    )
    selection_seed: Annotated[int, Meta(description="Where a random selection of hosts begins.")] = 0
    allocator: Annotated[
        str,
        Meta(
            description="Instead of both, a class of your own that says which nodes and hosts a job gets: "
            "path/to/file.py:ClassName."
        ),
    ] = ""
    stuck: Annotated[
        Literal["error", "pending"],
        Meta(
            description="What becomes of jobs that wait when nothing else will happen: the simulation ends "
            "with an error, or they are left pending (REJECTED in the end, with a note pending=REASON)."
        ),
    ] = "error"

    @property
    def leaves_jobs(self) -> bool:
        """Whether jobs that wait in the end are left pending."""
        return self.stuck == "pending"

    def leave(self, cluster: Cluster) -> None:
        """Nothing else will happen: leave the jobs that wait, each with a note that says why it does."""
        for job in list(cluster.queue):
            cluster.decide(SetJobMetadata(job.id, f"{PENDING}={self.why_pending(job)}"))
            cluster.reject(job)

    def why_pending(self, job: Job) -> str:
        """Why a waiting job cannot start, in one word."""
        return "Resources"

    def begin(self, cluster: Cluster) -> None:
        """Prepare; called once, before any job is submitted."""
        return None

    def take_over(self, cluster: Cluster) -> None:
        """Go on from what others have decided, when policies take turns; a plan of one's own is made anew."""
        return None

    def estimate(self, job: Job) -> float:
        """How long a job is expected to run; asked when it is submitted.

        The answer is its walltime, unless a policy knows better. It is what ``cluster.queue`` and
        ``cluster.running`` go by, until the policy changes it with :meth:`Cluster.expect`.
        """
        return job.walltime

    @abstractmethod
    def schedule(self, cluster: Cluster) -> None:
        """Decide what to do now; called once for each message, after its events are known."""
