"""A scenario: platform, workload and configuration of a cluster in files that can be read and edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.settings.reservations import Reservation
from batsched_py.simulator.machine_files.toml import toml_machine
from batsched_py.slurm.accounting.listing import Accounting
from batsched_py.slurm.accounting.read import read_accounting, together
from batsched_py.slurm.conf.read import Cluster, read_cluster
from batsched_py.slurm.configuration_text import configuration_text
from batsched_py.slurm.findings import Finding, Findings
from batsched_py.slurm.jobs import WORKLOAD, JobMaker
from batsched_py.slurm.log_jobs import jobs_of, read_slurm_log
from batsched_py.slurm.moments import Clock
from batsched_py.slurm.platform import platform_text, words_of
from batsched_py.slurm.recorded import RECORDER, read_submissions
from batsched_py.slurm.reservations import read_reservations
from batsched_py.slurm.setup_script import read_setup
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.dependencies import check_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import profile_name

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

    @classmethod
    def of_folder(cls, folder: Path) -> Sources:
        """The files of a recorded scenario."""
        setup = folder / "setup.sh"
        return cls(
            conf=folder / "slurm.conf",
            reservations=(setup,) if setup.exists() else (),
            jobs=folder / "jobs.csv",
        )


class Scenario(Struct):
    """What the files of a cluster say."""

    cluster: Cluster
    jobs: list[Job]
    profiles: Mapping[str, Profile]
    findings: Findings

    @property
    def configuration(self) -> Configuration:
        """That of the policy."""
        return self.cluster.configuration


def read_scenario(sources: Sources) -> Scenario:
    """Read all files; raises :class:`~batsched_py.slurm.findings.Mistakes` with all that is wrong."""
    findings = Findings()
    is_log = sources.jobs is not None and sources.jobs.suffix != ".csv"
    is_recorded = sources.jobs is not None and not is_log
    cluster = read_cluster(sources.conf, findings, RECORDER if is_recorded else None)
    toml_machine(platform_text(cluster.machine, cluster.licences), str(sources.conf))
    words = words_of(cluster.machine)
    clock = Clock(zone=sources.zone)
    jobs: list[Job] = []
    profiles: Mapping[str, Profile] = {}
    log = None
    if sources.jobs is not None and is_log:
        log, clock = read_slurm_log(sources.jobs, sources.zone)
    reservations, listings = read_reserved(sources.reservations, clock, findings)
    listings += [read_accounting(path, findings) for path in sources.accounting]
    accounting = together(listings, findings)
    configuration = replace(
        cluster.configuration,
        start=clock.written(),
        qos=tuple(accounting.qos.values()),
        associations=tuple(accounting.associations.values()),
        reservations=tuple(reservations),
    )
    cluster.configuration = configuration
    if log is not None:
        jobs, profiles = jobs_of(log, configuration, words, findings)
    elif sources.jobs is not None:
        maker = JobMaker(configuration, words, clock, findings)
        submitted = list(read_submissions(sources.jobs, findings))
        jobs = [job for each in submitted for job in maker.jobs(each)]
        run_times = dict.fromkeys(each.run_time for each in submitted)
        profiles = {profile_name(time): Delay(seconds=time) for time in run_times}
    findings.check()
    check_dependencies(jobs, str(sources.jobs))
    return Scenario(cluster, jobs, profiles, findings)


def read_reserved(
    paths: Sequence[Path], clock: Clock, findings: Findings
) -> tuple[list[Reservation], list[Accounting]]:
    """The reservations of listings and scripts, and the accounts that scripts add."""
    found: dict[str, Reservation] = {}
    listings: list[Accounting] = []
    for path in paths:
        if path.suffix == ".sh":
            reservations, accounting = read_setup(path, clock, findings)
            listings.append(accounting)
        else:
            reservations = read_reservations(path, clock, findings)
        for reservation in reservations:
            if reservation.name in found:
                findings.mistake(str(path), f"there are two reservations called {shown(reservation.name)}")
            found[reservation.name] = reservation
    return list(found.values()), listings


def write_scenario(scenario: Scenario, folder: Path) -> list[Path]:
    """Write the files of a scenario into a folder; returns their names."""
    cluster = scenario.cluster
    cores = sum(len(kind.names) * kind.cores for kind in cluster.machine)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PLATFORM).write_text(platform_text(cluster.machine, cluster.licences))
        (folder / CONFIGURATION).write_text(configuration_text(cluster.configuration))
        (folder / NOT_MODELLED).write_text("\n".join(_report(scenario.findings)) + "\n")
        written = [folder / PLATFORM, folder / CONFIGURATION, folder / NOT_MODELLED]
        if scenario.jobs:
            workload = Workload(WORKLOAD, scenario.jobs, scenario.profiles, cores)
            write_batsim_json(folder / WORKLOAD_FILE, workload)
            written.insert(1, folder / WORKLOAD_FILE)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written ({error.strerror})") from None
    return written


def _report(findings: Findings) -> list[str]:
    return [
        f"What may shape the real schedule and is not modelled: {len(findings.unmodelled)}",
        *_listed(findings.unmodelled),
        "",
        f"What shapes no schedule: {len(findings.without_effect)}",
        *_listed(findings.without_effect),
    ]


def _listed(findings: Sequence[Finding]) -> list[str]:
    return [f"  {finding}" for finding in findings]
