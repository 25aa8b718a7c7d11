"""Load, cycles, bursts and memory: how a log goes over time."""

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.jobs import requested
from batsched_py.workload.swf.log import DAY, HOUR, WEEK, Floats, Integers, SwfLog, start_of, wall_clock


class Week(Struct, frozen=True, kw_only=True):
    """Seven days of a log, counted from its first submission."""

    jobs: int
    users: int | None
    """How many there are; none where no job of the log says whose it is."""
    load: float | None
    """Work submitted in the week, over what the machine can do in a week."""
    utilization: float | None
    """Share of the machine that jobs were running on during the week."""


class Load(Struct, frozen=True, kw_only=True):
    """How much a machine had to do."""

    jobs: int
    users: int | None
    """How many there are; none where no job says whose it is."""
    machine: int | None
    """Processors of the machine, if the header says so; without them load and utilization are unknown."""
    start: int | None
    """Unix time of the first submission, where the header says when the log began."""
    duration: float
    """Seconds from the first submission to the last."""
    work: float
    """Processor-seconds of all jobs: the sum of size times run time."""
    load: float | None
    """Work over what the machine can do between the first submission and the last."""
    utilization: float | None
    """Share of the machine that jobs were running on, from the first start to the last finish."""
    weeks: list[Week]


def load(log: SwfLog) -> Load:
    """Describe the load of a log; a wait that was not recorded counts as 0."""
    machine = log.machine_size
    origin = start_of(log)
    first, last = float(log.submit.min()), float(log.submit.max())
    work = log.run_time * np.maximum(log.processors, 0)
    starts = log.submit + np.maximum(log.wait, 0)
    begin, end = float(starts.min()), float((starts + log.run_time).max())
    total = float(work.sum())
    return Load(
        jobs=len(log),
        users=nb_users(log),
        machine=machine,
        start=None if origin is None else origin + int(first),
        duration=last - first,
        work=total,
        load=_share(total, machine, last - first),
        utilization=_share(total, machine, end - begin),
        weeks=_weeks(log, work, machine),
    )


def nb_users(log: SwfLog) -> int | None:
    """How many users there are, if any job says whose it is."""
    return len(np.unique(log.user[log.user >= 0])) or None


def intervals(submit: Floats, length: float) -> Integers:
    """The number of the interval of this length in which each job is submitted, from the first submission."""
    return ((submit - submit.min()) // length).astype(np.int64)


def daily_work(submit: Floats, work: Floats | Integers) -> Floats:
    """The work that is submitted on each day, counted from the first submission."""
    return np.bincount(intervals(submit, DAY), work).astype(np.float64)


def jobs_a_day(submit: Floats) -> float | None:
    """How many jobs are submitted on a day, from the first submission to the last."""
    days = float(np.ptp(submit)) / DAY
    return len(submit) / days if days > 0 else None


def variation(values: Floats) -> float:
    """The coefficient of variation: the standard deviation over the mean."""
    return float(values.std() / values.mean())


def _share(work: float, machine: int | None, duration: float) -> float | None:
    return work / (machine * duration) if machine and duration > 0 else None


def _weeks(log: SwfLog, work: Floats, machine: int | None) -> list[Week]:
    week = intervals(log.submit, WEEK)
    count = int(week.max()) + 1
    jobs = np.bincount(week, minlength=count)
    submitted = np.bincount(week, work, minlength=count)
    moments, sizes = log.submit.min() + WEEK * np.arange(count + 1), np.maximum(log.processors, 0)
    starts = log.submit + np.maximum(log.wait, 0)
    until_end = _passed_since(starts + log.run_time, sizes, moments)
    busy = np.diff(_passed_since(starts, sizes, moments) - until_end)
    known = log.user >= 0
    active = np.unique(np.stack([week[known], log.user[known]]), axis=1)[0]
    users = np.bincount(active, minlength=count)
    return [
        Week(
            jobs=int(jobs[i]),
            users=int(users[i]) if known.any() else None,
            load=_share(float(submitted[i]), machine, WEEK),
            utilization=_share(float(busy[i]), machine, WEEK),
        )
        for i in range(count)
    ]


def _passed_since(events: Floats, weights: Floats, moments: Floats) -> Floats:
    """At each moment, the weighted sum of how long ago the events before it were."""
    order = np.argsort(events, kind="stable")
    so_far = np.searchsorted(events[order], moments)
    weight = np.concatenate([[0.0], np.cumsum(weights[order])])
    moment = np.concatenate([[0.0], np.cumsum((weights * events)[order])])
    return weight[so_far] * moments - moment[so_far]


HOURS: Final = 7 * 24


class Cycles(Struct, frozen=True, kw_only=True):
    """Submissions by the hour of the week."""

    known: bool
    """Whether the log says when it began; otherwise weeks begin with it."""
    by_hour_of_week: list[int]
    """Jobs submitted in each hour of the week, from Monday 0:00, all weeks taken together."""
    working_hours: float | None
    """Share of the jobs submitted from Monday to Friday, between 8:00 and 18:00; these are 30 % of a week."""
    weekend: float | None
    """Share of the jobs submitted on Saturdays and Sundays, 29 % of a week."""


def cycles(log: SwfLog) -> Cycles:
    """Describe when the jobs of a log are submitted."""
    hours = (wall_clock(log, log.submit) // HOUR).astype(np.int64) % HOURS
    counts = np.bincount(hours, minlength=HOURS)
    by_day = counts.reshape(7, 24)
    is_known = start_of(log) is not None
    return Cycles(
        known=is_known,
        by_hour_of_week=counts.tolist(),
        working_hours=float(by_day[:5, 8:18].sum() / counts.sum()) if is_known else None,
        weekend=float(by_day[5:].sum() / counts.sum()) if is_known else None,
    )


#: The lengths of the intervals that time is divided into, in seconds, from a minute to a day.
SCALES: Final = {
    "1 min": 60.0, "5 min": 300.0, "15 min": 900.0, "30 min": 1800.0,
    "1 h": 3600.0, "4 h": 14400.0, "12 h": 43200.0, "1 d": 86400.0,
}  # fmt: skip


class Burstiness(Struct, frozen=True, kw_only=True):
    """How unevenly a log is spread over time and over sizes.

    Burstiness as normalised entropy (Minh and Wolters, section V): 1 for an even spread, towards 0 for
    bursts.

    For probabilities p over N cells it is ``-sum(p * log(p)) / log(N)``, which lies between 0, when
    everything is in one cell, and 1, when all cells have the same.
    """

    temporal: dict[str, float]
    """Normalised entropy of the arrivals, for each length of interval."""
    spatial: float
    """Normalised entropy of the run time over the sizes of jobs."""


def burstiness(log: SwfLog) -> Burstiness:
    """Describe the burstiness of a log."""
    return Burstiness(
        temporal={name: temporal_entropy(log.submit, scale) for name, scale in SCALES.items()},
        spatial=spatial_entropy(log),
    )


def temporal_entropy(submit: Floats, scale: float) -> float:
    """Normalised entropy of arrivals over intervals of ``scale`` seconds, from the first to the last."""
    return _normalised_entropy(np.bincount(intervals(submit, scale)))


def spatial_entropy(log: SwfLog) -> float:
    """Normalised entropy of the run time of all jobs that ask for i processors, i = 1 ... the largest."""
    return _normalised_entropy(np.bincount(requested(log), log.run_time)[1:])


def _normalised_entropy(amounts: NDArray[Any]) -> float:
    if len(amounts) < 2:
        return 0.0
    shares = amounts[amounts > 0] / amounts.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(len(amounts)))


Series = NDArray[np.float64]

#: Fewest values of which anything is estimated: shorter series have too few scales to compare.
FEWEST_VALUES: Final = 512


class Hurst(Struct, frozen=True, kw_only=True):
    """The Hurst parameter of a series: 0.5 without memory, towards 1 the longer it remembers.

    A series is long-range dependent when its autocorrelation decays like ``k ** (2H - 2)`` with 1/2 < H <
    1, so slowly that it cannot be summed. No finite series can prove that, and each estimator is misled
    by something else (trends, cycles, short memory), so :func:`hurst` gives all of them, their median and
    their spread.
    """

    aggregated_variance: float
    detrended_fluctuation: float
    local_whittle: float
    wavelet: float
    median: float
    spread: float
    """The largest estimate minus the smallest."""


def hurst(series: Series) -> Hurst | None:
    """All estimates for a series; none where it is too short or does not vary."""
    if len(series) < FEWEST_VALUES or np.ptp(series) == 0:
        return None
    estimates = {name: estimate(series) for name, estimate in ESTIMATORS.items()}
    values = list(estimates.values())
    return Hurst(**estimates, median=float(np.median(values)), spread=max(values) - min(values))


def aggregated_variance(series: Series) -> float:
    """From the variance of the means of blocks, which falls with their length m like ``m ** (2H - 2)``.

    The mean of the series itself varies, too, and the blocks are measured against it: what is expected is
    ``m ** (2H - 2) - n ** (2H - 2)``. H is the value for which the observed variances fit that best on
    a logarithmic scale, where a variance weighs as much as it has blocks.
    """
    n = len(series)
    lengths = _powers_of_two(4, n // 32)
    blocks = (series[: n // length * length].reshape(-1, length) for length in lengths)
    observed = np.log([block.mean(axis=1).var() for block in blocks])
    candidates = np.arange(0.01, 1.0, 0.001)
    exponents = 2 * candidates[:, None] - 2
    misfit = observed - np.log(lengths**exponents - float(n) ** exponents)
    weights = 1 / lengths
    centre = np.average(misfit, axis=1, weights=weights)
    return float(candidates[np.average((misfit - centre[:, None]) ** 2, axis=1, weights=weights).argmin()])


def detrended_fluctuation(series: Series) -> float:
    """From how far the cumulated series strays from a straight line in windows of length m: ``m ** H``.

    A length weighs as much as the root of its number of windows.
    """
    path = np.cumsum(series - series.mean())
    lengths = _powers_of_two(16, len(series) // 16)
    fluctuations = []
    for length in lengths:
        windows = path[: len(path) // length * length].reshape(-1, length)
        steps = np.arange(length) - (length - 1) / 2
        slopes = windows @ steps / (steps @ steps)
        residuals = windows - windows.mean(axis=1, keepdims=True) - slopes[:, None] * steps
        fluctuations.append(np.sqrt(np.mean(residuals**2)))
    return _slope(np.log(lengths), np.log(fluctuations), 1 / np.sqrt(lengths))


def local_whittle(series: Series) -> float:
    """From the spectrum at low frequencies f, which grows towards 0 like ``f ** (1 - 2H)`` (Robinson 1995).

    Uses the lowest ``n ** 0.65`` frequencies, and the H of the largest likelihood.
    """
    n = len(series)
    count = int(n**0.65)
    power = np.abs(np.fft.rfft(series - series.mean())[1 : count + 1]) ** 2
    log_frequency = np.log(np.arange(1, count + 1) / n)

    def loss(h: Series) -> Series:
        whitened = power * np.exp((2 * h[:, None] - 1) * log_frequency)
        return np.log(whitened.mean(axis=1)) - (2 * h - 1) * log_frequency.mean()

    coarse = np.arange(0.0, 1.5, 0.02)
    best = coarse[loss(coarse).argmin()]
    fine = np.arange(best - 0.02, best + 0.02, 0.0005)
    return float(fine[loss(fine).argmin()])


def wavelet(series: Series) -> float:
    """From the energy of Haar wavelets at each octave j, which grows like ``2 ** (j * (2H - 1))``.

    Octaves weigh as much as they have coefficients (Abry and Veitch 1998); the two finest are left out,
    where short memory shows.
    """
    octaves, energies, weights = [], [], []
    smooth = series
    for octave in range(1, int(np.log2(len(series))) - 3):
        pairs = smooth[: len(smooth) // 2 * 2].reshape(-1, 2)
        details = (pairs[:, 0] - pairs[:, 1]) / np.sqrt(2)
        smooth = pairs.sum(axis=1) / np.sqrt(2)
        if octave > 2:
            octaves.append(octave)
            energies.append(np.log2(np.mean(details**2)) + 1 / (len(details) * np.log(2)))
            weights.append(len(details))
    return (_slope(np.array(octaves), np.array(energies), np.array(weights)) + 1) / 2


ESTIMATORS: Final = {
    each.__name__: each for each in (aggregated_variance, detrended_fluctuation, local_whittle, wavelet)
}


def _powers_of_two(first: int, last: int) -> NDArray[np.int64]:
    return 2 ** np.arange(int(np.log2(first)), int(np.log2(last)) + 1)


def _slope(x: Series, y: Series, weights: Series) -> float:
    return float(np.polyfit(x, y, 1, w=np.sqrt(weights))[0])


#: Arrivals are counted in intervals of this many seconds.
INTERVAL: Final = 900.0
_FEWEST_WEEKS: Final = 4


def arrival_hurst(submit: Floats) -> Hurst | None:
    """The Hurst parameter of the number of arrivals in each quarter of an hour, without the weekly cycle.

    A cycle looks like memory to some estimators. So the mean of each quarter of an hour of the week is
    subtracted first, unless the log is shorter than four weeks, which do not show a cycle.
    """
    counts, period = np.bincount(intervals(submit, INTERVAL)), int(WEEK / INTERVAL)
    if len(counts) < _FEWEST_WEEKS * period:
        return hurst(counts.astype(np.float64))
    place = np.arange(len(counts)) % period
    means = np.bincount(place, counts) / np.bincount(place)
    return hurst(counts - means[place])


#: So many jobs apart run times are compared, to tell how long what jobs are like lasts.
LAGS: Final = (1, 10, 100)


def autocorrelation(values: Floats, lag: int) -> float | None:
    """The correlation of values with those so many places later, if there are any and they vary."""
    if len(values) <= lag or np.ptp(values) == 0:
        return None
    around = values - values.mean()
    return float(np.mean(around[lag:] * around[:-lag]) / np.mean(around**2))
