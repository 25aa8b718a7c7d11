"""What ``slurm forecast`` is asked, and its answer."""

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.slurm.conf import read_cluster
from batsched_py.slurm.forecast.advice import alternatives, submitted, with_known_usage
from batsched_py.slurm.forecast.forecast import INSTEAD, Forecast, Wish, forecast, waiting_job
from batsched_py.slurm.forecast.likely import Likely
from batsched_py.slurm.forecast.live import completed
from batsched_py.slurm.forecast.proof import proven, stretched
from batsched_py.slurm.forecast.queue_log import LoggedJobs, QueueLog
from batsched_py.slurm.forecast.squeue_table import read_live
from batsched_py.slurm.reading import Clock, Findings, time_limit
from batsched_py.slurm.sbatch import Submission
from batsched_py.slurm.scenario import configured
from batsched_py.workload.sources.accounting import zone_named


class Question(Struct, frozen=True):
    """What is asked: the options of the command."""

    conf: Path
    listing: Path
    log: Path | None
    job: str | None
    time: str | None
    nodes: int | None
    submit: str | None
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
    with findings.noting("--at"):
        if question.moment is not None:
            moment = Clock(0.0, question.zone).moment(question.moment)
    live = read_live(question.listing, question.zone, findings, moment)
    now = live.now if moment is None else moment
    with findings.noting("--time"):
        time = None if question.time is None else time_limit(question.time)
    if now is None:
        findings.mistake(str(question.listing), "does not tell when it was printed; give --at TIME")
    cluster = read_cluster(question.conf, findings)
    findings.check()
    assert now is not None
    clock = Clock(now, question.zone)
    configuration = configured(cluster, question.reservations, question.accounting, clock, findings)
    coming = [each for each in configuration.reservations if each.end > 0]
    cluster.configuration = replace(
        configuration, reservations=tuple(replace(each, start=max(each.start, 0.0)) for each in coming)
    )
    findings.check()
    jobs = completed(live, question.listing, cluster, findings)
    findings.check()
    queue, known = None, cluster
    if question.log is not None:
        queue = QueueLog(LoggedJobs(question.log, question.zone, cluster), jobs, now)
        known = with_known_usage(cluster, queue, findings)
    changes: dict[str, Submission] = {}
    if question.submit is not None:
        new = submitted(question.submit, jobs, cluster, now, question.zone, findings)
        jobs.append(new)
        changes = alternatives(new, cluster, now)
    elif question.job is not None and time is None and question.nodes is None:
        changes = alternatives(waiting_job(jobs, question.job), cluster, now)
    elif question.job is not None:
        changes = {INSTEAD: Wish(question.job, time, question.nodes).applied(jobs)}
    tells_priorities = live.columns is None or "PRIORITY" in live.columns
    likely = None if queue is None else Likely.now(queue, jobs)
    found = forecast(known, jobs, now, likely, question.repetitions, changes, findings, tells_priorities)
    if queue is not None:
        stretch, proof = proven(queue, known, question.repetitions)
        found = replace(stretched(found, stretch, now), proof=proof)
    return replace(found, not_modelled=list(dict.fromkeys(map(str, findings.unmodelled))))
