"""A scenario that is ready to be simulated several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.result import Result
from batsched_py.api.simulate import simulate
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.configuration import Configuration, read_configuration
from batsched_py.simulator.machine_files.toml import read_toml_machine
from batsched_py.slurm.comparison.schedules import simulated_jobs, with_workload
from batsched_py.slurm.configuration_text import configuration_text
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE
from batsched_py.slurm.what_if.change import changed
from batsched_py.workload.batsim_json import RECORDED_FINISH, read_batsim_json, write_batsim_json
from batsched_py.workload.model import Workload


def _check_nodes(configuration: Configuration, platform: Path) -> None:
    """Refuse partitions of nodes that the platform has not."""
    known = {host.properties.get("node") for host in read_toml_machine(platform).hosts}
    for partition in configuration.partitions:
        nodes = [] if partition.nodes.upper() == "ALL" else expand(partition.nodes)
        if unknown := [name for name in nodes if name not in known]:
            raise InputError(
                f"--set: partition {shown(partition.name)} has node {shown(unknown[0])}, "
                f"which {platform} does not have"
            )


class Prepared(Struct):
    """The files of a scenario; those that differ from the ones of its folder are in a room of their own."""

    platform: Path
    workload: Path
    configuration: Path
    room: Path

    @classmethod
    def of(cls, folder: Path, changes: Sequence[str], room: Path) -> Prepared:
        """The scenario of a folder, with changes of its configuration."""
        for needed in (PLATFORM, WORKLOAD_FILE, CONFIGURATION):
            if not (folder / needed).is_file():
                raise InputError(
                    f"{folder / needed}: there is no such file; make it by `batsched-py slurm import`"
                )
        room.mkdir()
        prepared = cls(folder / PLATFORM, folder / WORKLOAD_FILE, folder / CONFIGURATION, room)
        if changes:
            configuration = read_configuration(prepared.configuration)
            for change in changes:
                configuration = changed(configuration, change)
            _check_nodes(configuration, prepared.platform)
            prepared.configure(configuration)
        return prepared

    def configure(self, configuration: Configuration) -> None:
        """Simulate another configuration than that of the folder."""
        self.configuration = self.room / CONFIGURATION
        self.configuration.write_text(configuration_text(configuration))

    def simulated(
        self, users: str, options: Mapping[str, str], policy: Mapping[str, str] | None = None
    ) -> Result:
        """A simulation with these users, and perhaps with options of the policy."""
        return simulate(
            str(self.workload),
            "slurm",
            options={"configuration_file": str(self.configuration), **(policy or {})},
            users=users,
            user_options=options,
            platform=str(self.platform),
            progress=False,
        )

    def finishes(self) -> dict[str, float]:
        """When each job had finished: as recorded, else in a simulation without reactions.

        A job that does not run there finishes when it is submitted.
        """
        workload = read_batsim_json(self.workload, "w0")
        if workload.finishes is not None:
            return {
                job.name: float(finish) for job, finish in zip(workload.jobs, workload.finishes, strict=True)
            }
        ends = self.table(self.simulated("rigid", {}))["end"].to_dict()
        return {job.name: float(ends.get(job.name, job.submission_time)) for job in workload.jobs}

    def remember(self, finishes: Mapping[str, float]) -> None:
        """Let the workload tell when its jobs had finished, if it does not."""
        workload = read_batsim_json(self.workload, "w0")
        if workload.finishes is not None:
            return
        workload.jobs = [
            replace(job, extra={**job.extra, RECORDED_FINISH: finishes.get(job.name, job.submission_time)})
            for job in workload.jobs
        ]
        self.submit(workload)

    def submit(self, workload: Workload) -> None:
        """Simulate other jobs than those of the folder."""
        self.workload = self.room / WORKLOAD_FILE
        write_batsim_json(self.workload, workload)

    def table(self, result: Result) -> pd.DataFrame:
        """The jobs of a simulation."""
        held: dict[str, float | None] = {}
        with suppress(InputError):  # no job waits for another
            names = [name.rpartition("!")[2] for name in result.held["job_id"].astype(str)]
            held = dict(zip(names, result.held["eligible_time"].tolist(), strict=True))
        return with_workload(simulated_jobs(result.jobs, held), self.workload)
