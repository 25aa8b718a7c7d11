"""A monitor of your own: how full the machine is, and how many jobs wait, whenever that changes.

batsched-py run -w LOG.swf -s easy --monitor examples/monitor.py:Fullness     # PREFIX_monitor_fullness.csv
"""

from batsched_py.decision.observers import Monitor
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.schedulers import Cluster


class Fullness(Monitor):
    """The hosts that have jobs, the jobs that wait, and those that have ended."""

    columns = ("time", "busy", "waiting", "ended")

    def __init__(self) -> None:
        self.waiting = 0
        self.nb_ended = 0
        self.last: tuple[int, int, int] | None = None

    def submitted(self, job: Job, now: float) -> None:
        """One job more waits."""
        self.waiting += 1

    def started(self, running: RunningJob, now: float) -> None:
        """It waits no longer."""
        self.waiting -= 1

    def rejected(self, job: Job, now: float) -> None:
        """Nor does one that is rejected."""
        self.waiting -= 1

    def ended(self, ended: RunningJob, state: JobState, now: float) -> None:
        """Jobs that were killed are counted, too."""
        self.nb_ended += 1

    def settled(self, cluster: Cluster) -> None:
        """A line for each change."""
        seen = cluster.nb_hosts - cluster.nb_free, self.waiting, self.nb_ended
        if seen != self.last:
            self.last = seen
            self.write(cluster.now, *seen)
