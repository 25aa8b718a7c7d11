"""One simulation as a value: enough to run it here, in another process or on another machine."""

from __future__ import annotations

from msgspec import Struct, field

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.protocol.events import Settings
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.users import USERS
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import WalltimeRule


class Experiment(Struct, frozen=True, kw_only=True):
    """A log, a machine, a scheduler, and how they are to be read.

    Files are named, not held; options are kept as the command line gives them.
    """

    workload: str
    """The file of the log or workload."""
    walltime: WalltimeRule = "max"
    walltime_factor: float = 2.0
    platform: str | None = None
    """A platform file."""
    hosts: int | None = None
    """So many equal hosts in place of a file. Without either, as many as the log's own machine had."""
    speed: float | None = None
    """Of the equal hosts, relative to the log's own machine."""
    scheduler: str
    scheduler_options: dict[str, str] = field(default_factory=dict)
    users: str | None = None
    """How the users behave who submit the jobs. Without it the simulator submits them, at their times."""
    user_options: dict[str, str] = field(default_factory=dict)

    def new_process(self, workload: Workload) -> DecisionProcess:
        """The side that decides, about to begin."""
        scheduler = SCHEDULERS.create(self.scheduler, self.scheduler_options)
        if self.users is None:
            return DecisionProcess(scheduler)
        return DecisionProcess(scheduler, USERS.create(self.users, self.user_options).users(workload))

    def new_batsim(self, workload: Workload, platform: Platform, prefix: str) -> Batsim:
        """The side that simulates, about to begin; its files will be ``PREFIX_jobs.csv`` and so on."""
        if self.users is None:
            return Batsim(platform, [workload], outputs=Outputs(prefix))
        return Batsim(platform, [], Settings(dynamic_jobs=True, profile_reuse=True), Outputs(prefix))

    def read_platform(self, workload: Workload) -> Platform:
        """The machine to simulate."""
        if self.platform is not None:
            return read_platform(self.platform)
        hosts = workload.nb_hosts if self.hosts is None else self.hosts
        if hosts is None:
            raise InputError(
                f"{self.workload}: does not say how large its machine was; say how many hosts to simulate"
            )
        return Platform.homogeneous(hosts, 1.0 if self.speed is None else self.speed)

    def arguments(self) -> list[str]:
        """The arguments that make ``batsched-py run`` run this experiment."""
        arguments = ["-w", self.workload]
        if self.walltime != "max":
            arguments += ["--walltime", self.walltime]
        if self.walltime_factor != 2.0:
            arguments += ["--walltime-factor", f"{self.walltime_factor!r}"]
        if self.platform is not None:
            arguments += ["-p", self.platform]
        if self.hosts is not None:
            arguments += ["--hosts", f"{self.hosts}"]
        if self.speed is not None:
            arguments += ["--speed", f"{self.speed!r}"]
        return arguments + self.decision_arguments()

    def decision_arguments(self) -> list[str]:
        """The part of them that ``batsched-py serve`` takes."""
        arguments = ["-s", self.scheduler]
        for key, value in self.scheduler_options.items():
            arguments += ["-o", f"{key}={value}"]
        return arguments
