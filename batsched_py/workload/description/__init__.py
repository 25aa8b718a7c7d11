"""Describing a log, each figure with its definition, and telling how similar two logs are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.description import jobs as of_jobs
from batsched_py.workload.description import over_time
from batsched_py.workload.description import users as of_users
from batsched_py.workload.swf.log import SwfLog

#: Schedulers check the time only now and then: a job that exceeds its time by less is not suspicious.
_GRACE = 60.0


class Quality(Struct, frozen=True, kw_only=True):
    """Records of a log by what is wrong or strange about them; a record may be in several kinds."""

    left_out: dict[str, int]
    """Records that could not be used, and why."""
    guessed: dict[str, int]
    """Values that were filled in when the log was made of another source."""
    suspicious: dict[str, int]
    """Records that were kept."""
    unknown: dict[str, int]
    """Records that do not say something."""


def quality(log: SwfLog) -> Quality:
    """Count what is wrong or strange in a log."""
    sizes = log.processors
    machine = log.machine_size
    estimated = log.requested_time > 0
    suspicious = {
        "run time is 0": log.run_time == 0,
        "ran for over a minute more than requested": estimated & (log.run_time > log.requested_time + _GRACE),
        "larger than the machine": np.zeros(len(log), dtype=bool) if machine is None else sizes > machine,
        "allocated more processors than requested": (log.requested_processors > 0)
        & (log.allocated_processors > log.requested_processors),
        "allocated fewer processors than requested": (log.allocated_processors > 0)
        & (log.allocated_processors < log.requested_processors),
        "used more processor time than there was": log.average_cpu_time > log.run_time + _GRACE,
        "cancelled or failed, yet ran": np.isin(log.status, (0, 5)) & (log.run_time > 0),
        "completed, yet never ran": (log.status == 1) & (log.run_time == 0),
        "cancelled while it waited": log.never_started,
        "names a preceding job, for which no simulation waits": log.preceding_job > 0,
        "has a think time, which no simulation uses": log.think_time >= 0,
    }
    unknown = {
        "size": of_jobs.requested(log) <= 0,
        "wait": log.wait < 0,
        "requested time": ~estimated,
        "status": log.status < 0,
        "user": log.user < 0,
        "executable": log.executable < 0,
        "queue": log.queue < 0,
    }
    return Quality(
        left_out=dict(log.left_out),
        guessed=dict(log.guessed),
        suspicious={kind: int(found.sum()) for kind, found in suspicious.items() if found.any()},
        unknown={kind: int(found.sum()) for kind, found in unknown.items() if found.any()},
    )


class Description(Struct, frozen=True, kw_only=True):
    """What a log is like; each part says what its figures mean."""

    name: str
    header: dict[str, str]
    load: over_time.Load
    users: of_users.Users | None
    """None where no job says whose it is."""
    cycles: over_time.Cycles
    flurries: of_users.Flurries
    quality: Quality
    characterised: int
    """How many jobs the parts below are about: those that completed and asked for processors."""
    tells_completed: bool
    """Whether the log says which jobs completed; otherwise all that ran are taken."""
    distributions: of_jobs.Distributions
    bags: of_jobs.BagsOfTasks
    burstiness: over_time.Burstiness
    memory: over_time.Hurst | None
    """Long-range dependence of the arrivals; none where the log is too short to tell."""
    correlation: of_jobs.Correlation
    locality: of_users.Locality

    def __repr__(self) -> str:
        return f"<Description of {self.name}: {self.characterised:,} jobs; .load, .users, .cycles, ...>"


def describe(log: SwfLog, hosts: int | None = None) -> Description:
    """Describe a log, on a machine of so many processors, if its header does not say how many there were."""
    header = log.header
    if hosts is not None:
        log = replace(log, header=header | {"MaxProcs": f"{hosts}"})
    jobs = of_jobs.characterised(log)
    if not jobs.run_time.any():
        raise InputError(f"{log.path or 'the log'}: no job ran for some time on a known number of processors")
    return Description(
        name=Path(log.path).name,
        header=header,
        load=over_time.load(log),
        users=of_users.users(log),
        cycles=over_time.cycles(log),
        flurries=of_users.flurries(log),
        quality=quality(log),
        characterised=len(jobs),
        tells_completed=of_jobs.tells_completed(log),
        distributions=of_jobs.distributions(jobs),
        bags=of_jobs.bags_of_tasks(jobs),
        burstiness=over_time.burstiness(jobs),
        memory=over_time.arrival_hurst(jobs.submit),
        correlation=of_jobs.correlation(jobs),
        locality=of_users.locality(jobs),
    )


class Tolerance(NamedTuple):
    """How far a quantity may be from the log's to count as alike."""

    limit: float
    of: Literal["difference", "share", "factor"] = "difference"
    """Whether the difference is limited, or its share of the log's value, or the quotient."""

    def holds(self, log: float, copy: float) -> bool:
        """Whether a copy's value is near enough; one that is not known is not."""
        if self.of == "factor":
            return log / self.limit <= copy <= log * self.limit
        return abs(copy - log) <= (self.limit if self.of == "difference" else self.limit * abs(log))

    def __str__(self) -> str:
        texts = {"difference": "{:.2f}", "share": "{:.0%}", "factor": "factor {:g}"}
        return texts[self.of].format(self.limit)


_WORK: Final = "work in {} jobs"
TOLERANCES: Final = {
    "load": Tolerance(0.05),
    "jobs a day": Tolerance(0.05, "share"),
    **{_WORK.format(name): Tolerance(0.05) for name in of_jobs.CLASSES},
    "spatial entropy": Tolerance(0.03),
    "run time and size": Tolerance(0.03),
    "entropy, 15 min": Tolerance(0.02),
    "entropy, 30 min": Tolerance(0.02),
    "Hurst parameter": Tolerance(0.07),
    "jobs in bags": Tolerance(0.05),
    "largest bag": Tolerance(2, "factor"),
    "repeats within 100 s": Tolerance(0.1),
    "run times, 1 job apart": Tolerance(0.1),
    "run times, 10 jobs apart": Tolerance(0.1),
    "run times, 100 jobs apart": Tolerance(0.1),
    "variation of daily work": Tolerance(0.3, "share"),
    "deviation in bags of 1e3 to 1e4 s": Tolerance(0.4, "share"),
}
#: Up to which Kolmogorov-Smirnov distance two distributions count as alike.
DISTANCES: Final = {"run times": 0.05, "sizes": 0.05, "sizes of bags": 0.05, "run times of bags": 0.06}


class Traits(Struct, frozen=True, kw_only=True):
    """What a log is compared by."""

    quantities: dict[str, float]
    samples: dict[str, NDArray[Any]]


class Likeness(Struct, frozen=True, kw_only=True):
    """How similar a copy is to the original."""

    quantities: dict[str, float]
    """The copy's values."""
    distances: dict[str, float]
    """Kolmogorov-Smirnov distances of its distributions to those of the original."""


def traits(log: SwfLog) -> Traits:
    """What a log is compared by, computed from the jobs that ran; its load is that of all jobs."""
    jobs = of_jobs.jobs_that_ran(log)
    bags = of_jobs.contiguous_bags(jobs)
    large = bags.sizes > 1
    means = bags.means(jobs.run_time)
    middling = large & (means >= 1e3) & (means < 1e4)
    gaps = of_jobs.repeat_gaps(jobs)
    memory = over_time.arrival_hurst(jobs.submit)
    logarithms = of_jobs.log_run_times(jobs.run_time)
    alike = {lag: over_time.autocorrelation(logarithms, lag) for lag in over_time.LAGS}
    work = jobs.run_time * of_jobs.requested(jobs)
    return Traits(
        quantities={
            "load": _known(over_time.load(log).load),
            "jobs a day": _known(over_time.jobs_a_day(jobs.submit)),
            **{_WORK.format(name): share for name, share in of_jobs.work_by_class(jobs).items()},
            "spatial entropy": over_time.spatial_entropy(jobs),
            "run time and size": _known(of_jobs.pearson(jobs.run_time, of_jobs.requested(jobs))),
            "entropy, 15 min": over_time.temporal_entropy(jobs.submit, 900),
            "entropy, 30 min": over_time.temporal_entropy(jobs.submit, 1800),
            "Hurst parameter": np.nan if memory is None else memory.median,
            "jobs in bags": float(bags.sizes[large].sum() / bags.sizes.sum()),
            "largest bag": float(bags.sizes.max()),
            "repeats within 100 s": _mean(gaps <= of_jobs.DELTA),
            **{f"run times, {lag} job{'s' * (lag > 1)} apart": _known(value) for lag, value in alike.items()},
            "variation of daily work": over_time.variation(over_time.daily_work(jobs.submit, work)),
            "deviation in bags of 1e3 to 1e4 s": _mean(bags.deviations(jobs.run_time)[middling]),
        },
        samples={
            "run times": jobs.run_time,
            "sizes": of_jobs.requested(jobs),
            "sizes of bags": bags.sizes,
            "run times of bags": means[large],
        },
    )


def likeness(original: Traits, copy: Traits) -> Likeness:
    """Compare two logs; a distribution that one of them lacks has the largest distance."""
    return Likeness(
        quantities=copy.quantities,
        distances={
            name: of_jobs.kolmogorov_smirnov(sample, copy.samples[name])
            for name, sample in original.samples.items()
        },
    )


def failures(original: Traits, copies: Sequence[Likeness]) -> Mapping[str, int]:
    """For each check how many of the copies fail it; none fails what the original does not tell."""
    failed = {
        name: sum(not tolerance.holds(known, copy.quantities[name]) for copy in copies)
        for name, tolerance in TOLERANCES.items()
        if not isnan(known := original.quantities[name])
    }
    far = {name: sum(copy.distances[name] > limit for copy in copies) for name, limit in DISTANCES.items()}
    return failed | far


def _known(value: float | None) -> float:
    return np.nan if value is None else value


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else np.nan
