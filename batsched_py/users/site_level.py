"""Users at the level of a site, who come to work in the morning and draw from one mix of jobs.

E. Shmueli and D. Feitelson, "Using Site-Level Modeling to Evaluate the Performance of Parallel System
Schedulers", MASCOTS 2006; D. Feitelson, "Resampling with Feedback: A New Paradigm of Using Workload Data for
Performance Evaluation", JSSPP 2021 (there figures 19 to 21).
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users import Behaviour, Submission, User
from batsched_py.users.population import DAY, HOUR, no_longer_than, without_waits
from batsched_py.users.rigid import who
from batsched_py.workload.model import Workload


@dataclass
class SiteLevel(Behaviour):
    """Users who come once a day, and go on as long as they are answered soon; all draw from one mix of jobs.

    Each day a user comes at a random time between two hours of the day, and submits a job drawn from the log.
    When the job is over, the user goes on with a chance that falls with its response time R, as
    `goes_on` / (1 + R / `tolerance`): thinks for a moment, and submits another one. Otherwise, and after the
    last hour, the user leaves, and comes back on the next day; after a job that was over at night, in the
    morning. With `cycle=false` users come at any time of the day, and there is no last hour.
    """

    name = "site-level"

    nb_users: Annotated[int, Meta(ge=1, le=10**6, description="How many users there are.")] = 100
    days: Annotated[int, Meta(ge=1, description="How long users submit.")] = 28
    cycle: Annotated[
        bool, Meta(description="Whether users only come and submit between two hours of the day.")
    ] = True
    first_hour: Annotated[float, Meta(ge=0, lt=24, description="Of the day, from which on users come.")] = 8.0
    last_hour: Annotated[
        float, Meta(gt=0, le=24, description="Of the day, from which on nobody submits.")
    ] = 18.0
    longest: Annotated[
        float, Meta(ge=0, description="The longest run time of a job of the mix, in hours; 0 for any.")
    ] = 4.0
    goes_on: Annotated[
        float, Meta(ge=0, le=1, description="The chance to go on after a job that took no time.")
    ] = 0.8
    tolerance: Annotated[
        float, Meta(gt=0, description="After how many minutes of response that chance is half as large.")
    ] = 20.0
    think: Annotated[
        float, Meta(ge=0, description="The mean time that users think before they go on, in minutes.")
    ] = 5.0
    seed: Annotated[int, Meta(ge=0, description="Of all that users draw.")] = 0

    def __post_init__(self) -> None:
        if self.first_hour >= self.last_hour:
            raise InputError(
                f"first_hour={self.first_hour:g}, last_hour={self.last_hour:g}: the first hour of "
                "site-level users must be before the last one"
            )

    @property
    def hours(self) -> tuple[float, float]:
        """Between which times of the day users submit, in seconds."""
        return (self.first_hour * HOUR, self.last_hour * HOUR) if self.cycle else (0.0, DAY)

    def chance(self, response: float) -> float:
        """That a user goes on after a job with this response time."""
        return self.goes_on / (1 + response / (self.tolerance * 60))

    def users(self, workload: Workload) -> list[User]:
        """So many new ones, who draw from the jobs of the workload."""
        mix = without_waits(no_longer_than(workload, self.longest))
        return [SiteUser(number, self, mix) for number in range(self.nb_users)] if mix.jobs else []


class SiteUser(User):
    """Is away, at work, or waits for a job."""

    def __init__(self, number: int, rules: SiteLevel, mix: Workload) -> None:
        self.name = str(number + 1)
        self._number = number
        self._rules = rules
        self._mix = mix
        self._random = np.random.default_rng([rules.seed, number, 1])
        self._drawn_jobs = np.random.default_rng([rules.seed, number, 2])
        """Apart, so that what is submitted does not depend on what the user lives through."""
        self._nb_jobs = 0
        self._nb_sessions = 0
        self._submitted = 0.0
        self._time = self._arrival(0)

    def next_time(self) -> float:
        """When it submits its next job, unless it waits for one."""
        return self._time if self._time < self._rules.days * DAY else inf

    def submit(self, now: float) -> list[Submission]:
        """A job drawn from the mix."""
        mix = self._mix
        job = mix.jobs[int(self._drawn_jobs.integers(len(mix.jobs)))]
        number = self._nb_jobs * self._rules.nb_users + self._number + 1
        self._nb_jobs += 1
        self._submitted, self._time = now, inf
        job = replace(job, id=f"{mix.name}!{number}", extra=job.extra | {"user": self.name})
        note = f"{who(self.name)} session={self._nb_sessions}"
        return [Submission(job, mix.profiles[job.profile], note)]

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Go on after a moment, or leave."""
        rules = self._rules
        goes_on = self._random.random() < rules.chance(now - self._submitted)
        self._time = now + self._random.exponential(rules.think * 60)
        start, end = rules.hours
        if goes_on and start <= self._time % DAY < end:
            return
        self._nb_sessions += 1
        today, time = divmod(now, DAY)
        self._time = self._arrival(int(today) + (time >= start))

    def _arrival(self, day: int) -> float:
        """When it comes on some day."""
        return day * DAY + float(self._random.uniform(*self._rules.hours))
