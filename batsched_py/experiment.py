"""One simulation: its two sides from their parts, and all of it as a value that any process can run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from batsched_py.core import fastest
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.pybatsim import PYBATSIM, PyBatsimProcess
from batsched_py.errors import InputError
from batsched_py.protocol.events import Event, Settings
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.users import USERS, Behaviour
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import WalltimeRule


def new_process(
    scheduler: str,
    settings: Mapping[str, str],
    behaviour: Behaviour | None,
    workloads: Sequence[Workload],
    scheduling_delay: float = 0.0,
) -> DecisionProcess | PyBatsimProcess:
    """The side that decides; with a behaviour, the jobs of the workloads are submitted from there."""
    if scheduler.startswith(PYBATSIM):
        if behaviour is not None or scheduling_delay:
            raise InputError("a scheduler of PyBatsim decides without --users and without --scheduling-delay")
        return PyBatsimProcess(scheduler, settings)
    policy = SCHEDULERS.create(scheduler, settings)
    users = [] if behaviour is None else [user for load in workloads for user in behaviour.users(load)]
    return DecisionProcess(policy, users, scheduling_delay)


def new_batsim(
    platform: Platform,
    workloads: Sequence[Workload],
    behaviour: Behaviour | None,
    prefix: str,
    ignore_communication: bool = False,
    energy: bool = False,
    events: Sequence[Sequence[Event]] = (),
    compute_sharing: bool = False,
) -> Batsim:
    """The side that simulates; without a behaviour, it submits the jobs of the workloads at their times."""
    dynamic = behaviour is not None
    settings = Settings(dynamic_jobs=dynamic, profile_reuse=dynamic, compute_sharing=compute_sharing)
    outputs = fastest(Outputs)(prefix, machine_states=energy)
    static = () if dynamic else workloads
    return Batsim(platform, static, settings, outputs, ignore_communication, energy, events)


class Experiment(Struct, frozen=True, kw_only=True):
    """A log, a machine, a scheduler and users, as the options of ``batsched-py run`` name them."""

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

    def sides(
        self, workload: Workload, platform: Platform, prefix: str
    ) -> tuple[Batsim, DecisionProcess | PyBatsimProcess]:
        """Both sides, about to begin; the files will be ``PREFIX_jobs.csv`` and so on."""
        behaviour = None if self.users is None else USERS.create(self.users, self.user_options)
        batsim = new_batsim(platform, [workload], behaviour, prefix)
        return batsim, new_process(self.scheduler, self.scheduler_options, behaviour, [workload])

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

    def run_options(self) -> list[str]:
        """What makes ``batsched-py run`` run this experiment."""
        options = self._workload_options()
        if self.platform is not None:
            options += ["-p", self.platform]
        if self.hosts is not None:
            options += ["--hosts", str(self.hosts)]
        if self.speed is not None:
            options += ["--speed", str(self.speed)]
        return options + self._plugin_options()

    def serve_options(self) -> list[str]:
        """What makes ``batsched-py serve`` decide in this experiment."""
        return self._plugin_options() + ([] if self.users is None else self._workload_options())

    def _workload_options(self) -> list[str]:
        options = ["-w", self.workload]
        if self.walltime != "max":
            options += ["--walltime", self.walltime]
        if self.walltime_factor != 2.0:
            options += ["--walltime-factor", str(self.walltime_factor)]
        return options

    def _plugin_options(self) -> list[str]:
        options = ["-s", self.scheduler]
        for key, value in self.scheduler_options.items():
            options += ["-o", f"{key}={value}"]
        if self.users is not None:
            options += ["--users", self.users]
        for key, value in self.user_options.items():
            options += ["-u", f"{key}={value}"]
        return options
