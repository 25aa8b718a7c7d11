"""Users who submit a job again, with twice the walltime, when it was stopped at its walltime.

batsched-py run -w LOG.swf -s easy --walltime requested --users "submit_again.py:SubmitAgain(think-time)"
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users import Action, EachUser, Submission, User, WrappedUser
from batsched_py.users.rigid import who
from batsched_py.workload.model import Workload


@dataclass
class SubmitAgain(EachUser):
    """Whose job was stopped at its walltime submits it again with twice the walltime, up to three times."""

    name = "submit-again"

    times: int = 3

    def named_users(self, workload: Workload) -> list[User]:
        """The users of the inner behaviour, made persistent."""
        return [Persistent(user, self.times) for user in self.inner.users(workload)]


class Persistent(WrappedUser):
    """A user who tries again."""

    def __init__(self, user: User, times: int) -> None:
        super().__init__(user)
        self.times = times
        self.submissions: dict[str, Submission] = {}
        """What was submitted and is not over."""
        self.attempts: dict[str, int] = {}
        """Which attempt a job is, if it is not the first."""
        self.to_do: list[Submission] = []
        self.ended = inf
        """When the last of these jobs was stopped."""

    def next_time(self) -> float:
        """At once if there is a job to submit again."""
        return min(self.ended, super().next_time())

    def submit(self, now: float) -> Sequence[Action]:
        """What the inner user does, and the jobs to submit again."""
        actions = [*super().submit(now), *self.to_do]
        self.to_do, self.ended = [], inf
        self.submissions |= {each.job.id: each for each in actions if isinstance(each, Submission)}
        return actions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Keep a job from the inner user until its last attempt is over."""
        submission = self.submissions.pop(job.id)
        attempt = self.attempts.pop(job.id, 0)
        first = job.id.partition("-again")[0]
        if state is JobState.WALLTIME_REACHED and attempt < self.times:
            new = f"{first}-again{attempt + 1}"
            self.attempts[new] = attempt + 1
            self.ended = now
            self.to_do.append(
                Submission(
                    replace(submission.job, id=new, walltime=2 * submission.job.walltime),
                    submission.profile,
                    note=f"{who(self.name)} again={first.partition('!')[2]}",
                )
            )
        else:
            super().job_ended(replace(job, id=first), state, now)
