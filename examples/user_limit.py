"""A limit of one's own: each user runs at most so many jobs at once, under any policy.

batsched-py run -w workloads/sample.swf --hosts 64 -s "examples/user_limit.py:UserLimit(easy)" -o most=2
"""

from collections import Counter
from dataclasses import dataclass

from batsched_py.schedulers import Cluster, Limit, RunningJob, Wrapper


class JobsOfUsers(Limit):
    """Counts the running jobs of each user."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: Counter[str | None] = Counter()

    def allows(self, job, run_time: float) -> bool:
        return self.running[job.user] < self.most

    def started(self, running: RunningJob) -> None:
        self.running[running.job.user] += 1

    def ended(self, running: RunningJob) -> None:
        self.running[running.job.user] -= 1


@dataclass
class UserLimit(Wrapper):
    """Around a policy: no user has more than so many jobs running."""

    name = "user-limit"

    most: int = 4

    def begin(self, cluster: Cluster) -> None:
        cluster.put_beside(JobsOfUsers(self.most))
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        super().schedule(cluster)
