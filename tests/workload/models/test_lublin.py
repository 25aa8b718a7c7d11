"""The Lublin-Feitelson model, against its own formulas, computed in another way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from batsched_py.workload.models.lublin import (
    BATCH,
    EITHER,
    INTERACTIVE,
    LONGEST,
    JobClass,
    Lublin,
    arrivals,
    job_run_times,
    job_sizes,
    slot_weights,
)

CLASSES = {"batch": BATCH, "interactive": INTERACTIVE, "either": EITHER}
JOBS = 200_000
#: How far a share of this many jobs may be from its probability: five standard deviations.
FIVE_SIGMA = 5 * np.sqrt(0.25 / JOBS)


@pytest.fixture(params=CLASSES)
def jobs(request: pytest.FixtureRequest) -> JobClass:
    return CLASSES[request.param]


def probability_of_sizes(jobs: JobClass) -> dict[int, float]:
    """The exact distribution: two uniform pieces of the logarithm, cut where it rounds to each size."""

    def below(logarithm: float) -> float:
        first = stats.uniform(jobs.low, jobs.middle - jobs.low).cdf(logarithm)
        second = stats.uniform(jobs.middle, jobs.high - jobs.middle).cdf(logarithm)
        return jobs.below * first + (1 - jobs.below) * second

    found = {1: jobs.serial}
    for power in range(1, 8):
        found[2**power] = jobs.power_of_two * (below(power + 0.5) - below(power - 0.5))
    rest = 1 - jobs.serial - jobs.power_of_two
    for size in range(1, 130):
        share = rest * (below(np.log2(size + 0.5)) - below(np.log2(size - 0.5)))
        found[size] = found.get(size, 0.0) + share
    return found


def below_run_time(jobs: JobClass, size: int, seconds: float) -> float:
    """The exact probability of a shorter run time: a mixture of two log-gammas, cut off at exp(12) s."""
    short = min(max(jobs.slope * size + jobs.start, 0), 1)
    first, second = (stats.gamma(shape, scale=scale) for shape, scale in (jobs.first, jobs.second))

    def mixed(logarithm: float) -> float:
        return short * first.cdf(logarithm) + (1 - short) * second.cdf(logarithm)

    return mixed(min(np.log(seconds), LONGEST)) / mixed(LONGEST)


def mean_run_time(jobs: JobClass, size: int) -> float:
    """The exact mean: the exponential tilts a gamma distribution of scale b into one of scale b / (1 - b)."""
    short = min(max(jobs.slope * size + jobs.start, 0), 1)
    total = weight = 0.0
    for share, (shape, scale) in ((short, jobs.first), (1 - short, jobs.second)):
        tilted = stats.gamma(shape, scale=scale / (1 - scale)).cdf(LONGEST)
        total += share * (1 - scale) ** -shape * tilted
        weight += share * stats.gamma(shape, scale=scale).cdf(LONGEST)
    return total / weight


def test_sizes_have_the_exact_distribution(jobs: JobClass) -> None:
    sizes = job_sizes(jobs, JOBS, np.random.default_rng(1))
    expected = probability_of_sizes(jobs)
    assert sum(expected.values()) == pytest.approx(1)
    for size, probability in expected.items():
        assert np.mean(sizes == size) == pytest.approx(probability, abs=FIVE_SIGMA)
    mean = sum(size * probability for size, probability in expected.items())
    assert sizes.mean() == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("size", [1, 8, 64])
def test_run_times_have_the_exact_quantiles_and_mean(jobs: JobClass, size: int) -> None:
    run_times = job_run_times(jobs, np.full(JOBS, size), np.random.default_rng(2))
    for share in (0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        seconds = np.quantile(run_times, share)
        low, high = below_run_time(jobs, size, seconds), below_run_time(jobs, size, seconds + 1)
        assert low - FIVE_SIGMA <= share <= high + FIVE_SIGMA
    error = run_times.std() / np.sqrt(JOBS)
    assert run_times.mean() == pytest.approx(mean_run_time(jobs, size) - 0.5, abs=5 * error + 0.5)


def test_large_jobs_run_longer() -> None:
    log = Lublin(types="batch").generate(50_000, seed=3)
    large = log.run_time[log.processors >= 64].mean()
    assert large > 1.2 * log.run_time[log.processors <= 2].mean()


def test_slots_weigh_what_the_gamma_density_says(jobs: JobClass) -> None:
    shape, scale = jobs.day
    gamma = stats.gamma(shape, scale=scale)
    weights = np.zeros(48)
    for number in range(11, 59):
        weights[(number - 1) % 48] = gamma.cdf(number + 0.5) - gamma.cdf(number - 0.5)
    assert slot_weights(jobs) == pytest.approx(weights / weights.mean(), rel=1e-4)


def test_arrivals_follow_the_weights_of_the_day(jobs: JobClass) -> None:
    times = arrivals(jobs, JOBS, np.random.default_rng(4))
    assert (np.diff(times) >= 0).all()
    shares = np.bincount((times % 86400 // 1800).astype(int), minlength=48) / JOBS
    assert shares == pytest.approx(slot_weights(jobs) / 48, abs=0.01)


def test_the_rate_of_arrivals_is_that_of_the_gaps(jobs: JobClass) -> None:
    shape, scale = jobs.gap
    gamma = stats.gamma(shape * jobs.whole_day, scale=scale)
    logarithms = np.linspace(0, 13, 20_001)
    mean = integrate.trapezoid(np.exp(logarithms) * gamma.pdf(logarithms), logarithms) / gamma.cdf(13)
    times = arrivals(jobs, JOBS, np.random.default_rng(5))
    assert times[-1] / JOBS == pytest.approx(mean, rel=0.03)


def test_interactive_and_batch_jobs_come_together() -> None:
    log = Lublin().generate(20_000, seed=6)
    assert set(log.queue.tolist()) == {0, 1}
    assert log.processors[log.queue == 0].max() <= 45
    assert log.processors[log.queue == 1].max() <= 128
    assert log.machine_size == 128
    (only,) = {queue for queue in Lublin(types="interactive").generate(100, seed=1).queue.tolist()}
    assert only == 0


def test_another_machine_moves_the_sizes() -> None:
    log = Lublin(types="batch", processors=1024).generate(20_000, seed=7)
    assert 512 < log.processors.max() <= 1024
    small = Lublin(types="batch", processors=8).generate(20_000, seed=7)
    assert small.processors.max() <= 8


def test_the_same_seed_gives_the_same_log() -> None:
    first, again, other = (Lublin().generate(1000, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.submit, again.submit) and np.array_equal(first.run_time, again.run_time)
    assert not np.array_equal(first.submit, other.submit)
