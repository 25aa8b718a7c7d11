"""From the files of a live cluster to a forecast."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.slurm.accounting.read import read_accounting, together
from batsched_py.slurm.conf.read import read_cluster
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.accuracy import Accuracy
from batsched_py.slurm.forecast.forecast import Forecast, Wish, forecast
from batsched_py.slurm.forecast.live import LiveJob, read_live
from batsched_py.slurm.moments import Clock
from batsched_py.slurm.scenario import read_reserved
from batsched_py.slurm.values import time_limit
from batsched_py.workload.sources.accounting import zone_named


class Question(Struct, frozen=True):
    """What is asked, in the order of the command's options."""

    conf: Path
    listing: Path
    log: Path | None
    job: str | None
    time: str | None
    nodes: int | None
    moment: str | None
    repetitions: int
    accounting: tuple[Path, ...]
    reservations: tuple[Path, ...]
    zone: str


def answer(question: Question) -> tuple[Forecast, list[str]]:
    """The forecast, and what was not modelled."""
    zone_named(question.zone)
    findings = Findings()
    live = read_live(question.listing, question.zone, findings)
    now, time = live.now, None
    try:
        if question.moment is not None:
            now = Clock(0.0, question.zone).moment(question.moment)
    except ValueError as error:
        findings.mistake("--at", str(error))
    try:
        time = None if question.time is None else time_limit(question.time)
    except ValueError as error:
        findings.mistake("--time", str(error))
    if now is None:
        findings.mistake(str(question.listing), "does not tell when it was printed; give --at TIME")
    cluster = read_cluster(question.conf, findings)
    findings.check()
    assert now is not None
    clock = Clock(now, question.zone)
    reservations, listings = read_reserved(question.reservations, clock, findings)
    listings += [read_accounting(path, findings) for path in question.accounting]
    accounting = together(listings, findings)
    cluster.configuration = replace(
        cluster.configuration,
        qos=tuple(accounting.qos.values()),
        associations=tuple(accounting.associations.values()),
        reservations=tuple(
            replace(each, start=max(each.start, 0.0)) for each in reservations if each.end > 0
        ),
    )
    findings.check()
    accuracy = None if question.log is None else Accuracy.of_log(question.log, question.zone)
    wish = None if question.job is None else Wish(question.job, time, question.nodes)
    jobs = [with_limit(job, cluster.configuration) for job in live.jobs]
    found = forecast(cluster, jobs, now, accuracy, question.repetitions, wish, findings)
    return found, list(dict.fromkeys(map(str, findings.unmodelled)))


def with_limit(job: LiveJob, configuration: Configuration) -> LiveJob:
    """The job, with the time limit of its partition if it has none."""
    partition = next((each for each in configuration.partitions if each.name in job.partitions), None)
    if job.time_limit is not None or partition is None:
        return job
    return replace(job, time_limit=partition.default_time or partition.max_time)
