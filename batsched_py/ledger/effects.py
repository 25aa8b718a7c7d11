"""What comes of decisions: what is to be carried out."""

from msgspec import Struct

from batsched_py.ledger.running import ResizedJob, RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile


class RejectedJob(Struct, frozen=True, gc=False, eq=False):
    """A job that was refused for good."""

    job: Job
    time: float


class RegisteredJob(Struct, frozen=True, gc=False, eq=False):
    """A job that was made known while the simulation runs, and waits."""

    job: Job
    time: float
    profile: Profile | None = None
    """What it does, where that was not known before."""
    note: str = ""
    """What was noted about it."""


#: What is to be carried out: a start, a rejection, a registration, a resize, or any other decision.
Effect = RunningJob | RejectedJob | RegisteredJob | ResizedJob | ev.Event


def describe(decision: ev.Event) -> str:
    """What is decided about which job."""
    name = type(decision).__name__
    match decision:
        case ev.RegisterJob(job=job):
            return f"{name} {job.id}"
        case ev.ExecuteJob() | ev.RejectJob() | ev.SetJobMetadata():
            return f"{name} {decision.job_id}"
        case _:
            return name
