"""Why jobs of a live cluster wait: what the policy finds as soon as all running jobs are on their nodes."""

from __future__ import annotations

from batsched_py.schedulers.cluster import Cluster
from batsched_py.slurm.forecast.live import AFTERWARDS
from batsched_py.slurm.policy.slurm import Slurm

#: A running job starts within so many seconds of the simulation, unless it does not fit.
SETTLED = 60.0


class Telling(Slurm):
    """The policy, which notes once why jobs wait."""

    def begin(self, cluster: Cluster) -> None:
        """Begin as ever."""
        super().begin(cluster)
        self._noted: dict[str, str] | None = None

    def schedule(self, cluster: Cluster) -> None:
        """Decide as ever, and note why the others wait once the running jobs are there."""
        super().schedule(cluster)
        if self._noted is None and self._is_settled(cluster.now):
            waiting = [records for records in self._known.values() if records]
            self._noted = {
                records[0].job.name: self._causes.in_short(records, int(cluster.now)) for records in waiting
            }

    def _is_settled(self, now: float) -> bool:
        """Whether the running jobs run, and the others are in the queue."""
        if now > SETTLED:
            return True
        return bool(self._running) and not any(
            record.fields.runs or now < record.eligible <= AFTERWARDS
            for records in self._known.values()
            for record in records
        )

    @property
    def waits_for(self) -> dict[str, str]:
        """Why jobs waited or can never run, by the names of the jobs."""
        never = {job_id.partition("!")[2]: why for job_id, why in self._never.items()}
        return (self._noted or {}) | never
