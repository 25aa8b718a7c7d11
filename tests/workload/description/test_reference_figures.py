"""The figures of Minh and Wolters, on two of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.workload.description import Description, describe
from batsched_py.workload.sources import read_log

#: Computed independently of this project; see docs/workloads.md for the paper's own.
REFERENCE = {
    "HPC2N-2002-2.2-cln": {
        "jobs": 201_993, "spatial": 0.300, "correlation": -0.063, "contiguous": 0.643, "per key": 0.678,
        "classes": 17,
        "variability": [8, 150, 797, 6070, 27163],
    },
    "LLNL-Thunder-2007-1.1-cln": {
        "jobs": 102_972, "spatial": 0.330, "correlation": 0.2302, "contiguous": 0.394, "per key": 0.455,
        "classes": 17,
        "variability": [7, 177, 693, 5366, None],
    },
}  # fmt: skip


@pytest.fixture(scope="module", params=REFERENCE)
def known(request: pytest.FixtureRequest, shared: Path) -> tuple[Description, dict]:
    log = read_log(shared / "logs" / f"{request.param}.swf.gz")
    return describe(log), REFERENCE[request.param]


def test_the_number_of_jobs(known: tuple[Description, dict]) -> None:
    found, reference = known
    assert found.characterised == reference["jobs"]


def test_spatial_burstiness(known: tuple[Description, dict]) -> None:
    found, reference = known
    assert found.burstiness.spatial == pytest.approx(reference["spatial"], abs=0.005)


def test_correlation(known: tuple[Description, dict]) -> None:
    found, reference = known
    assert found.correlation.pearson == pytest.approx(reference["correlation"], abs=0.005)


def test_classes_of_sizes_are_as_many_as_in_table_iv(known: tuple[Description, dict]) -> None:
    found, reference = known
    assert found.distributions.popularity_classes == reference["classes"]


def test_share_of_jobs_in_bags(known: tuple[Description, dict]) -> None:
    found, reference = known
    assert found.bags.contiguous.share_of_jobs == pytest.approx(reference["contiguous"], abs=0.01)
    assert found.bags.per_key.share_of_jobs == pytest.approx(reference["per key"], abs=0.01)


def test_variability_within_bags(known: tuple[Description, dict]) -> None:
    found, reference = known
    measured = [each.variability for each in found.bags.contiguous.variability]
    assert (
        measured[1:]
        == [None if value is None else pytest.approx(value, rel=0.03) for value in reference["variability"]][
            1:
        ]
    )


def test_nearly_all_bags_are_submitted_within_1000_seconds(known: tuple[Description, dict]) -> None:
    found, _ = known
    assert found.bags.contiguous.share_of_short_submissions is not None
    assert found.bags.contiguous.share_of_short_submissions > 0.99
