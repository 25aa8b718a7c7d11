"""How like their logs generated ones are: many seeds, so these are slow."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.cli.generate import FIRST_SEED
from batsched_py.workload.description import (
    DISTANCES,
    TOLERANCES,
    Tolerance,
    failures,
    likeness,
    traits,
)
from batsched_py.workload.description.jobs import jobs_that_ran
from batsched_py.workload.models import MODELS, LearningModel
from batsched_py.workload.models.hidden import TRIALS
from batsched_py.workload.sources import read_log

LOGS = ["HPC2N-2002-2.2-cln", "LLNL-Thunder-2007-1.1-cln"]
CHECKS = {*TOLERANCES, *DISTANCES}
#: The seeds of ``compare --seeds 5``. Neither the model's constants nor the trials of fitting know them.
FRESH = range(FIRST_SEED, FIRST_SEED + 5)


def failed(log: Path, model: str, seeds: range) -> dict[str, int]:
    """How many seeds fail each check."""
    real = read_log(log)
    learner = MODELS.create(model, {})
    assert isinstance(learner, LearningModel)
    learner.fit(real)
    original = traits(real)
    jobs = len(jobs_that_ran(real))
    copies = [likeness(original, traits(learner.generate(jobs, seed))) for seed in seeds]
    return dict(failures(original, copies))


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_realistic_logs_are_like_the_original(shared: Path, name: str) -> None:
    """Each of these seeds is within every tolerance.

    It is no promise for all seeds: of 28 others of HPC2N one is outside at lag 100, as the page says.
    """
    assert failed(shared / "logs" / f"{name}.swf.gz", "realistic", FRESH) == dict.fromkeys(CHECKS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "SDSC-DS-2004-2.1-cln"])
def test_realistic_logs_have_the_memory_of_other_logs(shared: Path, name: str) -> None:
    """The same for logs that Minh and Wolters did not use."""
    assert failed(shared / "logs" / f"{name}.swf.gz", "realistic", FRESH) == dict.fromkeys(CHECKS, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_naive_logs_fail_every_check_but_those_of_amounts(shared: Path, name: str) -> None:
    """They have as many jobs a day as the log, its load, and no more work in short jobs than most logs."""
    amounts = {check for check in CHECKS if check.startswith(("jobs a day", "load", "work in"))}
    found = failed(shared / "logs" / f"{name}.swf.gz", "naive", range(10))
    assert {check: found[check] for check in CHECKS - amounts} == dict.fromkeys(CHECKS - amounts, 10)
    assert found["jobs a day"] == found["load"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_the_published_model_has_too_few_jobs_in_bags(shared: Path, name: str) -> None:
    found = failed(shared / "logs" / f"{name}.swf.gz", "minh-wolters", range(3))
    assert found["jobs in bags"] == 3


def test_logs_are_compared_with_seeds_that_fitting_has_not_tried() -> None:
    assert set(FRESH).isdisjoint(range(TRIALS))


def test_tolerances_are_differences_shares_and_factors() -> None:
    assert Tolerance(0.1).holds(0.5, 0.59) and not Tolerance(0.1).holds(0.5, 0.61)
    assert Tolerance(0.3, "share").holds(10, 12.9) and not Tolerance(0.3, "share").holds(10, 6.9)
    assert Tolerance(2, "factor").holds(10, 5) and not Tolerance(2, "factor").holds(10, 21)
    assert not Tolerance(0.1).holds(0.5, float("nan"))


def test_a_log_is_like_itself(root: Path) -> None:
    original = traits(read_log(root / "workloads" / "sample.swf"))
    same = likeness(original, original)
    assert set(failures(original, [same]).values()) == {0}
    assert set(same.distances.values()) == {0}
