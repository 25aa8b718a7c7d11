"""The options of Batsim that say what is simulated, for every command that runs a Batsim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from batsched_py.cli.options import (
    choose_platform,
    communication_option,
    energy_option,
    events_options,
    platform_options,
    read_workloads,
    sharing_option,
    workload_options,
)
from batsched_py.core import fastest
from batsched_py.errors import InputError
from batsched_py.protocol.events import Settings
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.external_events import read_events
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import parse_roles
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import WalltimeRule


class Scenario(Struct):
    """What is simulated, as the options of :func:`batsim_options` say it; each field is one of them."""

    platform_file: Path | None
    hosts: int | None
    speed: float | None
    workload_files: Sequence[Path]
    walltime_factor: float
    walltime_rule: WalltimeRule
    master_host: str
    roles: Sequence[str]
    mmax: int
    mmax_workload: bool
    forward_profiles_on_submission: bool
    enable_dynamic_jobs: bool
    acknowledge_dynamic_jobs: bool
    enable_profile_reuse: bool
    sched_cfg: str
    sched_cfg_file: Path | None
    ignore_communication: bool
    energy: bool
    event_files: Sequence[Path]
    forward_unknown_events: bool
    enable_compute_sharing: bool
    disable_storage_sharing: bool

    def batsim(self, prefix: str | None, machine_states: bool = False) -> Batsim:
        """A Batsim that is about to simulate it; it writes no files without a prefix for them."""
        if self.enable_profile_reuse and not self.enable_dynamic_jobs:
            raise InputError("--enable-profile-reuse makes sense with --enable-dynamic-jobs only")
        workloads = read_workloads(self.workload_files, self.walltime_factor, self.walltime_rule)
        platform = choose_platform(
            self.platform_file,
            self.hosts,
            self.speed,
            self.master_host,
            parse_roles(self.roles),
            _limit(self.mmax, workloads if self.mmax_workload else ()),
        )
        if platform is None:
            raise InputError("a simulation needs a machine; give -p PLATFORM.xml or --hosts N")
        return Batsim(
            platform,
            workloads,
            self._settings(),
            fastest(Outputs)(prefix, machine_states),
            self.ignore_communication,
            self.energy,
            [read_events(file, self.forward_unknown_events) for file in self.event_files],
        )

    def _settings(self) -> Settings:
        return Settings(
            dynamic_jobs=self.enable_dynamic_jobs,
            acknowledge_dynamic_jobs=self.acknowledge_dynamic_jobs,
            profile_reuse=self.enable_profile_reuse,
            forward_profiles=self.forward_profiles_on_submission,
            forward_unknown_events=self.forward_unknown_events,
            compute_sharing=self.enable_compute_sharing,
            storage_sharing=not self.disable_storage_sharing,
            scheduler_config=_scheduler_config(self.sched_cfg, self.sched_cfg_file),
        )


def batsim_options(command: Callable[..., None]) -> Callable[..., None]:
    """Batsim's options, handed to the command together as ``scenario``."""

    @wraps(command)
    def with_scenario(*arguments: Any, **options: Any) -> None:
        fields = {name: options.pop(name) for name in Scenario.__struct_fields__}
        command(*arguments, scenario=Scenario(**fields), **options)

    decorated: Callable[..., None] = with_scenario
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


_OPTIONS: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
    platform_options,
    workload_options(required=False),
    click.option(
        "-m",
        "--master-host",
        metavar="NAME",
        default="master_host",
        show_default=True,
        help="The host left out.",
    ),
    click.option(
        "-r",
        "--add-role-to-hosts",
        "roles",
        metavar="HOST[,HOST...]:ROLE",
        multiple=True,
        help="Give hosts of the platform a role: master, compute_node or storage.",
    ),
    click.option(
        "--mmax", metavar="N", type=click.IntRange(0), default=0, help="Keep the first N hosts only."
    ),
    click.option(
        "--mmax-workload", is_flag=True, help="Keep as many hosts as the largest workload was made for."
    ),
    click.option(
        "--forward-profiles-on-submission", is_flag=True, help="Send each job's profile with its submission."
    ),
    click.option("--enable-dynamic-jobs", is_flag=True, help="Let the decision process register jobs."),
    click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Announce registered jobs as submitted."),
    click.option("--enable-profile-reuse", is_flag=True, help="Keep the profiles of jobs that are over."),
    click.option("--sched-cfg", metavar="TEXT", default="", help="A text for the decision process."),
    click.option(
        "--sched-cfg-file", metavar="FILE", type=click.Path(path_type=Path), help="The same, from a file."
    ),
    communication_option,
    energy_option,
    events_options,
    sharing_option,
    click.option(
        "--disable-storage-sharing", is_flag=True, help="Let no more than one job use a storage host."
    ),
]


def _scheduler_config(text: str, file: Path | None) -> str:
    if file is None:
        return text
    if text:
        raise InputError("both --sched-cfg and --sched-cfg-file are given; give one of them")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _limit(mmax: int, workloads: Sequence[Workload]) -> int:
    """How many hosts to keep at most; 0 keeps all."""
    sizes = [workload.nb_hosts for workload in workloads]
    if None in sizes:
        raise InputError("--mmax-workload: a workload does not say how large its machine was; use --mmax N")
    return min(filter(None, (mmax, max(filter(None, sizes), default=0))), default=0)
