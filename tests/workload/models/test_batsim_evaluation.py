"""The generator of Batsim's evaluation, against the formulas of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from batsched_py.errors import InputError
from batsched_py.workload.models import MODELS
from batsched_py.workload.models.batsim_evaluation import PROGRAMS, BatsimEvaluation
from batsched_py.workload.swf.log import SwfLog

JOBS = 50_000
#: How far a share of this many jobs may be from its probability: five standard deviations.
FIVE_SIGMA = 5 * np.sqrt(0.25 / JOBS)


@pytest.fixture(scope="module")
def log() -> SwfLog:
    return BatsimEvaluation().generate(JOBS, seed=1)


def test_gaps_are_weibull_variates(log: SwfLog) -> None:
    gaps = np.diff(log.submit)
    assert stats.kstest(gaps, stats.weibull_min(2, scale=15).cdf).statistic < FIVE_SIGMA
    assert log.submit[0] == 0


def test_sizes_are_powers_of_two_of_lognormal_variates(log: SwfLog) -> None:
    variate = stats.lognorm(s=0.5, scale=np.exp(0.25))
    for power in range(6):
        expected = (variate.cdf(power + 1) - variate.cdf(power)) / variate.cdf(6)
        assert np.mean(log.processors == 2**power) == pytest.approx(expected, abs=FIVE_SIGMA)
    assert set(log.processors.tolist()) == {1, 2, 4, 8, 16, 32}


def test_every_program_of_a_size_is_as_likely_as_the_others(log: SwfLog) -> None:
    pairs = log.processors == 2
    found, counts = np.unique(log.run_time[pairs], return_counts=True)
    assert found.tolist() == [6.609, 26.481, 62.08, 140.95, 265.8, 593.59]
    assert stats.chisquare(counts).pvalue > 1e-6
    names = list(PROGRAMS)
    for program, seconds in zip(log.executable[pairs], log.run_time[pairs], strict=True):
        assert PROGRAMS[names[program - 1]][1] == seconds


def test_requested_times_leave_half_of_the_run_time_or_a_minute(log: SwfLog) -> None:
    requested = dict(zip(log.run_time.tolist(), log.requested_time.tolist(), strict=True))
    assert requested[88.51] == 149 and requested[265.8] == 399 and requested[6.609] == 67


def test_a_smaller_machine_has_smaller_jobs_only() -> None:
    small = BatsimEvaluation(processors=4).generate(500, seed=2)
    assert set(small.processors.tolist()) == {1, 2, 4} and small.machine_size == 4


def test_a_machine_of_another_size_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="choose among 1, 2, 4, 8, 16, 32"):
        MODELS.create("batsim-evaluation", {"processors": "3"})
