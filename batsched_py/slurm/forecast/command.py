"""From the files of a live cluster to a forecast."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.slurm.accounting.read import read_accounting, together
from batsched_py.slurm.conf.read import read_cluster
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.accuracy import Accuracy
from batsched_py.slurm.forecast.assumptions import completed
from batsched_py.slurm.forecast.forecast import Forecast, Wish, forecast
from batsched_py.slurm.forecast.live import read_live
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


def answer(question: Question) -> Forecast:
    """The forecast."""
    zone_named(question.zone)
    findings = Findings()
    moment = time = None
    try:
        if question.moment is not None:
            moment = Clock(0.0, question.zone).moment(question.moment)
    except ValueError as error:
        findings.mistake("--at", str(error))
    live = read_live(question.listing, question.zone, findings, moment)
    now = live.now if moment is None else moment
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
    jobs = completed(live, question.listing, cluster, findings)
    findings.check()
    found = forecast(cluster, jobs, now, accuracy, question.repetitions, wish, findings)
    return replace(found, not_modelled=list(dict.fromkeys(map(str, findings.unmodelled))))
