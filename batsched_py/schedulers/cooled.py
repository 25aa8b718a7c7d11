"""Jobs that wait while it is hot outside, under any policy.

That dispatchers should know the conditions of cooling: Q. Tang, S. Gupta and G. Varsamopoulos,
"Energy-Efficient Thermal-Aware Task Scheduling for Homogeneous High-Performance Computing Data Centers",
IEEE TPDS 19(11), 2008. C. Galleguillos et al. name it among the additional data of AccaSim.
"""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from msgspec import Meta

from batsched_py.errors import PolicyError
from batsched_py.outside.curve import Curve
from batsched_py.protocol.jobs import TICK
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.wrapping import Wrapper


@dataclass
class Cooled(Wrapper):
    """Around a policy: no job starts while it is hotter outside than the cooling can bear.

    The policy inside is not asked then, and is asked again when it has become cooler. Jobs that run go on.
    Without a temperature (``--temperature``) nothing changes.
    """

    name = "cooled"

    degrees: Annotated[
        float, Meta(description="No job starts while it is hotter outside, in degrees Celsius.")
    ] = 30.0

    def begin(self, cluster: Cluster) -> None:
        """It was cool enough until now."""
        self._cool_at = -inf
        """When it will be cool enough again, where a call was asked for then."""
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Let the policy inside decide, or ask to be called when it will be cool enough."""
        temperature, now = cluster.outside.temperature, cluster.now
        if temperature is None or temperature.at(now) <= self.degrees:
            if self._cool_at > -inf:
                self._cool_at = -inf
                cluster.look_again()
            super().schedule(cluster)
        elif cluster.queue and self._cool_at <= now:
            self._cool_at = self._cool_again(temperature, now)
            text = f"waits until it is cooler outside, at {self._cool_at:.10g}"
            cluster.remark(cluster.queue.head, text)
            cluster.call_at(self._cool_at)

    def _cool_again(self, temperature: Curve, now: float) -> float:
        """When it will be cool enough."""
        for time in temperature.changes(now, temperature.settled(now) + TICK):
            if temperature.at(time) <= self.degrees:
                return time
        raise PolicyError(
            f"scheduler 'cooled': from {now:g} on it is hotter than {self.degrees:g} degrees for ever, so no "
            "job can start; give a longer --temperature file, --outside-period S or more degrees"
        )
