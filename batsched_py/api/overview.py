"""What came out of a simulation, in a few lines for people."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.api.quantities import duration, energy
from batsched_py.experiment import Experiment
from batsched_py.protocol.jobs import HostState

if TYPE_CHECKING:
    from batsched_py.engines import Simulation


class Overview(Struct, frozen=True, omit_defaults=True):
    """What came out of a simulation; times in seconds, means over the jobs that ran."""

    scheduler: str
    users: str | None
    hosts: int
    jobs: int
    rejected: int
    killed: int
    makespan: float
    mean_waiting_time: float
    max_waiting_time: float
    mean_slowdown: float
    mean_bounded_slowdown: float
    """Jobs that ran for less than ten seconds count as if they ran so long."""
    walltime: str
    """By which rule the walltimes of logs were made."""
    utilization: float
    """The share of hosts and time, from 0 to the makespan, in which jobs ran."""
    consumed_joules: float | None
    """What the hosts drew, if that was accounted for."""
    files: list[str]
    wall_seconds: float
    refused: dict[str, int] = {}
    """How many of the rejected jobs a machine of nodes could never run, by the kind of what they lacked."""

    @classmethod
    def of(
        cls, experiment: Experiment, simulation: Simulation, files: list[str], wall_seconds: float
    ) -> Overview:
        """The overview of a finished simulation."""
        results, machines = simulation.results, simulation.machines
        users = experiment.actors.users
        return cls(
            scheduler=experiment.actors.scheduler.name,
            users=None if users is None else users.name,
            hosts=machines.count,
            jobs=results.nb_jobs,
            rejected=results.nb_rejected,
            killed=results.nb_finished - results.nb_success,
            makespan=results.makespan,
            mean_waiting_time=results.mean_of_finished(results.sum_waiting),
            max_waiting_time=results.max_waiting,
            mean_slowdown=results.mean_of_finished(results.sum_slowdown),
            mean_bounded_slowdown=results.mean_of_finished(results.sum_bounded_slowdown),
            walltime=experiment.scenario.workloads.walltime_rule,
            utilization=_share(machines.seconds()[HostState.COMPUTING], machines.count * results.makespan),
            consumed_joules=results.consumed_joules if experiment.scenario.energy else None,
            files=files,
            wall_seconds=round(wall_seconds, 3),
            refused=dict(simulation.refused.most_common()),
        )

    def _rejected(self) -> str:
        if not self.rejected:
            return "0"
        return f"{self.rejected:,} ({self.rejected / self.jobs:.1%}), in no mean"

    def rows(self) -> list[tuple[str, str]]:
        """What people read."""
        joules = self.consumed_joules
        return [
            ("scheduler", self.scheduler),
            ("users", self.users or "-"),
            ("hosts", f"{self.hosts:,}"),
            ("jobs", f"{self.jobs:,}"),
            ("  rejected", self._rejected()),
            *((f"    cannot get: {kind}", f"{count:,}") for kind, count in self.refused.items()),
            ("  killed or failed", f"{self.killed:,}"),
            ("makespan", duration(self.makespan)),
            ("mean wait", duration(self.mean_waiting_time) if self.jobs > self.rejected else "-"),
            ("max wait", duration(self.max_waiting_time)),
            ("mean bounded slowdown (10 s)", f"{self.mean_bounded_slowdown:.2f}"),
            ("walltime", self.walltime),
            ("utilization", f"{self.utilization:.1%}"),
            *([] if joules is None else [("energy", energy(joules))]),
            *zip(chain(["files"], repeat("")), self.files, strict=False),
            ("took", f"{self.wall_seconds:.2f} s"),
        ]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
