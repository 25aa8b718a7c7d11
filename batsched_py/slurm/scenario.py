"""A scenario: platform, workload and configuration of a cluster in files that can be read and edited."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from batsched_py.campaign.plan import to_toml
from batsched_py.errors import InputError
from batsched_py.output_files import write_file
from batsched_py.protocol.hosts import compact, expand
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown
from batsched_py.simulator.machine_files import NodeKind, toml_machine
from batsched_py.slurm.accounting import Accounting, read_accounting, together
from batsched_py.slurm.conf import Cluster, read_cluster
from batsched_py.slurm.jobs import WORKLOAD, JobMaker
from batsched_py.slurm.logged import jobs_of, read_slurm_log, with_groups, with_users
from batsched_py.slurm.policy.nodes import natural
from batsched_py.slurm.policy.settings import Configuration, Reservation
from batsched_py.slurm.reading import Clock, Findings, number, read_text
from batsched_py.slurm.reservations import read_reservations, read_setup, written_out
from batsched_py.slurm.sbatch import Submission, in_parts, part_name, read_options
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.dependencies import check_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.swf.conventions import profile_name
from batsched_py.workload.swf.log import SwfLog, start_of

_MEGABYTE = 1024


def platform_text(kinds: Sequence[NodeKind], licences: Mapping[str, int]) -> str:
    """The machine, its nodes in the order in which Slurm keeps them: that of their names and numbers."""
    nodes = [
        (name, _table(kind, kind.switches[place] if kind.switches else ""))
        for kind in kinds
        for place, name in enumerate(kind.names)
    ]
    nodes.sort(key=lambda node: natural(node[0]))
    tables = [
        {"names": compact([name for name, _ in alike]), **table}
        for table, alike in groupby(nodes, key=itemgetter(1))
    ]
    return to_toml({"nodes": tables} | ({"licences": dict(licences)} if licences else {}))


def words_of(kinds: Sequence[NodeKind]) -> NodeWords:
    """What jobs can ask for on the machine."""
    return NodeWords(
        frozenset(name for kind in kinds for name in kind.resources),
        frozenset(name for kind in kinds for name in kind.partitions),
        frozenset(name for kind in kinds for name in kind.features),
    )


def _table(kind: NodeKind, switch: str) -> dict[str, Any]:
    table: dict[str, Any] = {"cores": kind.cores, **kind.resources}
    if "memory" in kind.resources:
        whole, rest = divmod(kind.resources["memory"], _MEGABYTE)
        table["memory"] = f"{kind.resources['memory']} kB" if rest else f"{whole} MB"
    more = {"features": list(kind.features), "partitions": list(kind.partitions), "switch": switch}
    return table | {name: value for name, value in more.items() if value}


_HEAD = """\
# The configuration of a Slurm cluster. Names are those of Slurm; what is left out has Slurm's default.
# Times are in seconds, memory is in MB, and "inf" is no limit.

"""


def configuration_text(configuration: Configuration) -> str:
    """The text, which :func:`~batsched_py.slurm.policy.settings.read_configuration` reads back."""
    return _HEAD + to_toml(_plain(configuration))


def _plain(struct: Struct) -> dict[str, Any]:
    """The fields that differ from their defaults; those that it shares with others come last."""
    plain: dict[str, Any] = {}
    for name, default in _fields(type(struct)):
        value = getattr(struct, name)
        if value is not None and (default is NODEFAULT or value != default):
            plain[name] = _value(value)
    return plain


@cache
def _fields(kind: type[Struct]) -> list[tuple[str, Any]]:
    """The fields of a kind, each with its default if it has any."""
    own, found = kind.__annotations__, []
    for field in sorted(msgspec.structs.fields(kind), key=lambda field: field.name not in own):
        is_made = field.default_factory is not NODEFAULT
        found.append((field.name, field.default_factory() if is_made else field.default))
    return found


def _value(value: Any) -> Any:
    if isinstance(value, Struct):
        return _plain(value)
    if isinstance(value, tuple):
        return [_value(each) for each in value]
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


PLATFORM, WORKLOAD_FILE, CONFIGURATION = "platform.toml", "workload.json", "slurm.toml"
NOT_MODELLED = "not-modelled.txt"


class Sources(Struct, frozen=True, kw_only=True):
    """The files of a cluster."""

    conf: Path
    accounting: tuple[Path, ...] = ()
    reservations: tuple[Path, ...] = ()
    """What ``scontrol show reservation`` printed; a file that ends in ``.sh`` has lines that create some."""
    jobs: Path | None = None
    """A log of ``sacct``, or a ``jobs.csv`` of a recorded scenario."""
    zone: str = "UTC"
    since: str = ""
    """Since when a log of ``sacct`` has all jobs, if that is known."""

    @classmethod
    def of_folder(cls, folder: Path, given: Sources | None = None) -> Sources:
        """The files of a recorded scenario, with those that are given beside."""
        given, setup = given or cls(conf=folder), folder / "setup.sh"
        return replace(
            given,
            conf=folder / "slurm.conf",
            reservations=((setup,) if setup.exists() else ()) + given.reservations,
            jobs=given.jobs or folder / "jobs.csv",
        )


COLUMNS = ("at", "run", "args")

_JOB = re.compile(r"(?<=:)%([0-9]{1,9})")
RECORDER = {"kill_wait": 1.0, "message_timeout": 100.0}
"""What a recorder adds to the ``slurm.conf`` of a scenario, as far as it shapes schedules."""

SUBMITTING = 0.2
"""A recorder submits one job after another, in the order of the file; so long a call of sbatch takes."""

LAUNCHING = 0.9
"""So much longer than it sleeps a job runs when it is recorded at ten times the speed, in the mean."""

USER = "root"
"""Who submits jobs that do not say."""


def read_submissions(path: Path, findings: Findings) -> Iterator[Submission]:
    """The jobs of a recorded scenario, named by their numbers.

    Its ``jobs.csv`` tells when a job is submitted, how long it sleeps, and the options of ``sbatch``, in
    which ``%3`` is the third job of the file and ``%%`` is a ``%``.
    """
    rows = csv.reader(StringIO(read_text(path, findings)))
    head = next(rows, [])
    if missing := [name for name in COLUMNS if name not in head]:
        findings.mistake(f"{path}, line 1", f"there is no column {missing[0]}")
        return
    last = 0.0
    for place, row in enumerate(rows, start=1):
        where = f"{path}, line {rows.line_num}"
        if len(row) != len(head):
            findings.mistake(where, f"has {len(row)} fields instead of {len(head)}")
            continue
        values = dict(zip(head, row, strict=True))
        with findings.noting(where):
            parts = list(_submissions(place, values, where, findings))
            last = max(parts[0].at, last) + SUBMITTING
            for submitted in parts:
                submitted.at = last
                yield submitted


def _submissions(place: int, values: dict[str, str], where: str, findings: Findings) -> Iterator[Submission]:
    """The submission of a line; of a heterogeneous job, one for each of its parts."""
    for name in _JOB.findall(values["args"]):
        if not 1 <= int(name) < place:
            raise ValueError(f"{shown('%' + name)} is no job above this line")
    parts = in_parts(shlex.split(_JOB.sub(r"\1", values["args"]).replace("%%", "%")))
    for number_of_part, words in enumerate(parts):
        submission = read_options(words, where, findings)
        submission.name, submission.user = part_name(str(place), number_of_part), submission.user or USER
        submission.run_time, submission.at = number(values["run"]) + LAUNCHING, number(values["at"])
        if len(parts) > 1:
            submission.fields |= {"het": str(place), "het_size": len(parts)}
        yield submission


class Scenario(Struct):
    """What the files of a cluster say."""

    cluster: Cluster
    jobs: list[Job]
    profiles: Mapping[str, Profile]
    findings: Findings
    early: frozenset[str] = frozenset()
    """The jobs that were submitted before the log begins; what they waited for is not known."""

    @property
    def configuration(self) -> Configuration:
        """That of the policy."""
        return self.cluster.configuration


def read_scenario(sources: Sources) -> Scenario:
    """Read all files; raises :class:`~batsched_py.slurm.reading.Mistakes` with all that is wrong."""
    findings, log, clock = Findings(), None, Clock(zone=sources.zone)
    is_recorded = sources.jobs is not None and sources.jobs.suffix == ".csv"
    cluster = read_cluster(sources.conf, findings, RECORDER if is_recorded else None)
    toml_machine(platform_text(cluster.machine, cluster.licences), str(sources.conf))
    words = words_of(cluster.machine)
    jobs: list[Job] = []
    profiles: Mapping[str, Profile] = {}
    early = frozenset[str]()
    if sources.jobs is not None and not is_recorded:
        log, clock, early = read_slurm_log(sources.jobs, sources.zone, sources.since, findings)
    span = None if log is None else (0.0, _end_of(log, clock))
    configuration = configured(cluster, sources.reservations, sources.accounting, clock, findings, span)
    configuration = replace(configuration, start=clock.written())
    if log is not None:
        configuration = with_groups(with_users(configuration, log), log)
    for partition in () if configuration.groups else configuration.partitions:
        if partition.allow_groups:
            told = f"AllowGroups of partition {shown(partition.name)}: nothing tells who is in these groups"
            findings.left_out(str(sources.conf), told)
    cluster.configuration = configuration
    if log is not None:
        jobs, profiles = jobs_of(log, configuration, cluster.machine, words, clock, findings)
    elif sources.jobs is not None:
        maker = JobMaker(configuration, words, clock, findings)
        submitted = list(read_submissions(sources.jobs, findings))
        jobs = [job for each in submitted for job in maker.jobs(each)]
        run_times = dict.fromkeys(each.run_time for each in submitted)
        profiles = {profile_name(time): Delay(seconds=time) for time in run_times}
    findings.check()
    check_dependencies(jobs, str(sources.jobs))
    return Scenario(cluster, jobs, profiles, findings, early)


def _end_of(log: SwfLog, clock: Clock) -> float:
    """When the last job of a log ends, in seconds from its beginning."""
    last = float((log.submit + np.maximum(log.wait, 0.0) + log.run_time).max())
    return last + (start_of(log) or 0) - (clock.start or 0.0)


def configured(
    cluster: Cluster,
    reserved: Sequence[Path],
    accounting: Sequence[Path],
    clock: Clock,
    findings: Findings,
    span: tuple[float, float] | None = None,
) -> Configuration:
    """The configuration of a cluster with its reservations, accounts and QOS, of listings and scripts.

    Reservations that come again do so in the ``span`` of a log.
    """
    found: dict[str, Reservation] = {}
    listings: list[Accounting] = []
    known = {name for kind in cluster.machine for name in kind.names}
    for path in reserved:
        if path.suffix == ".sh":
            read, made = read_setup(path, clock, findings)
            listings.append(made)
        else:
            read = read_reservations(path, clock, findings)
        for reservation in read:
            if reservation.name in found:
                findings.mistake(str(path), f"there are two reservations called {shown(reservation.name)}")
            named = [] if reservation.nodes.upper() == "ALL" else expand(reservation.nodes)
            if missing := [name for name in named if name not in known]:
                told = f"reservation {shown(reservation.name)} has node {shown(missing[0])}"
                more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                findings.left_out(str(path), f"{told}{more}, which no NodeName has")
            found[reservation.name] = reservation
    whole = together([*listings, *(read_accounting(path, findings) for path in accounting)], findings)
    return replace(
        cluster.configuration,
        qos=tuple(whole.qos.values()),
        associations=tuple(whole.associations.values()),
        groups=whole.groups,
        reservations=tuple(one for each in found.values() for one in written_out(each, span)),
    )


def write_scenario(scenario: Scenario, folder: Path) -> list[Path]:
    """Write the files of a scenario into a folder; returns their names."""
    cluster = scenario.cluster
    cores = sum(len(kind.names) * kind.cores for kind in cluster.machine)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / PLATFORM, platform_text(cluster.machine, cluster.licences))
        write_file(folder / CONFIGURATION, configuration_text(cluster.configuration))
        write_file(folder / NOT_MODELLED, scenario.findings.report())
        written = [folder / PLATFORM, folder / CONFIGURATION, folder / NOT_MODELLED]
        if scenario.jobs:
            workload = Workload(WORKLOAD, scenario.jobs, scenario.profiles, cores)
            write_batsim_json(folder / WORKLOAD_FILE, workload)
            written.insert(1, folder / WORKLOAD_FILE)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return written
