"""A scenario that is ready to be simulated several times, with changes of its configuration.

A change is one line, written as in ``slurm.conf`` or as a field of ``slurm.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.result import Result
from batsched_py.api.simulate import simulate
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.simulator.machine_files import read_toml_machine
from batsched_py.simulator.slurm_conf import conf_line
from batsched_py.slurm.conf import changed as changed_by_line
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.policy.settings import UNUSED, Configuration, is_unused, read_configuration
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE, configuration_text
from batsched_py.slurm.schedules import simulated_jobs, with_workload
from batsched_py.workload.batsim_json import RECORDED_FINISH, read_batsim_json, write_batsim_json
from batsched_py.workload.model import Workload

_FIELD = re.compile(r"([a-z_]+)\.(?:([^=]+)\.)?([a-z_]+)\s*=\s*(.+)")

#: The tables of which there are several, and by which fields one is found.
_LISTS = {
    "partitions": ("name",),
    "qos": ("name",),
    "reservations": ("name",),
    "associations": ("account", "user"),
    "nodes": ("nodes",),
}


def changed(configuration: Configuration, text: str) -> Configuration:
    """The configuration with a change.

    ``PriorityWeightAge=5000``, ``SchedulerParameters=bf_interval=60`` and ``PartitionName=short MaxTime=30``
    are lines of ``slurm.conf``. ``scheduling.bf_interval=60``, ``partitions.short.max_time=1800`` and
    ``associations.physics/ada.shares=10`` are fields of ``slurm.toml``.
    """
    where = f"--set {shown(text)}"
    if match := _FIELD.fullmatch(text.strip()):
        table, name, field, value = match.groups()
        made = _with_field(configuration, where, (table, name, field), value)
    else:
        made = _with_line(configuration, where, text)
    if made == configuration:
        raise InputError(f"{where}: this would change nothing, for it is so already")
    return made


def _with_line(configuration: Configuration, where: str, text: str) -> Configuration:
    findings = Findings()
    line = conf_line(text, where, findings.mistake)
    findings.check()
    if line is None:
        raise InputError(f"{where}: is not of the form Name=Value")
    made = changed_by_line(configuration, line, findings)
    for finding in findings.unmodelled + findings.without_effect:
        raise InputError(f"{finding}: this would change nothing here")
    return made


def _with_field(
    configuration: Configuration, where: str, place: tuple[str, str | None, str], written: str
) -> Configuration:
    """A field of a table, or of the entry of a name in a list of tables, gets a value."""
    table, name, field = place
    if table in UNUSED and is_unused(table, field):
        raise InputError(f"{where}: this is not modelled, so it would change nothing here")
    content: dict[str, Any] = msgspec.to_builtins(configuration)
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written
    if table in _LISTS:
        entries = [dict(entry) for entry in content.get(table, ())]
        found = [entry for entry in entries if name == _name(entry, table)]
        if not found:
            known = ", ".join(shown_name(_name(entry, table)) for entry in entries) or "none"
            raise InputError(f"{where}: there is no {shown(name or '')} in {table}; there are {known}")
        found[0][field] = value
        content[table] = entries
    elif name is not None or table not in type(configuration).__struct_fields__:
        raise InputError(f"{where}: there is no table {shown(table if name is None else f'{table}.{name}')}")
    else:
        content[table] = {**content.get(table, {}), field: value}
    try:
        return msgspec.convert(content, Configuration)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None


def _name(entry: dict[str, Any], table: str) -> str:
    return "/".join(filter(None, (entry.get(field, "") for field in _LISTS[table])))


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
