"""Additional data of your own, a policy that goes by it, and a metric of it: how warm the machine room is.

batsched-py run -w LOG.swf --data examples/additional_data.py:RoomTemperature \\
    -s examples/additional_data.py:KeepCool                                    # PREFIX_data.csv
batsched-py metrics out_jobs.csv --metric examples/additional_data.py:Hottest
"""

from dataclasses import dataclass
from math import exp

from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.own_metrics import OwnMetric
from batsched_py.decision.observers import AdditionalData
from batsched_py.schedulers import Cluster, Scheduler

COOL, HOT = 20.0, 35.0
HOUR = 3600.0


class RoomTemperature(AdditionalData):
    """In degrees: an idle machine leaves it at 20, a full one heats it up to 35 in the course of hours."""

    name = "room"

    def begin(self, cluster: Cluster) -> None:
        """The room is cool."""
        self.degrees, self.since, self.load = COOL, cluster.now, 0.0

    def measure(self, cluster: Cluster) -> float:
        """Each hour it comes closer, by a factor of e, to what the load of the machine leads to."""
        goal = COOL + (HOT - COOL) * self.load
        self.degrees = goal + (self.degrees - goal) * exp((self.since - cluster.now) / HOUR)
        self.since = cluster.now
        return self.degrees

    def settled(self, cluster: Cluster) -> None:
        """The policy has decided: this is the load until something happens."""
        self.load = 1 - cluster.nb_free / cluster.nb_hosts


@dataclass
class KeepCool(Scheduler):
    """First come, first served, but no job starts while the room is warmer than a limit and others run."""

    name = "keep-cool"

    limit: float = 30.0

    def schedule(self, cluster: Cluster) -> None:
        """Look at the temperature of now; the next end of a job is time enough to look again."""
        while cluster.queue and cluster.fits(cluster.queue.head):
            if cluster.outside.data["room"] > self.limit and cluster.running:
                return
            cluster.start(cluster.queue.head)


class Hottest(OwnMetric):
    """The highest temperature of the room."""

    name = "hottest_room"
    unit = "degrees"

    def measure(self, outcome: Outcome) -> float | None:
        """None where it was not computed."""
        return None if outcome.data is None else outcome.data.query("name == 'room'")["value"].max()
