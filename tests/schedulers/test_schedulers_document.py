"""What docs/schedulers.md says: its policy runs, and it names all there are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.orders import OrderName
from batsched_py.schedulers.selection import SelectionName
from batsched_py.testing import JobSpec, starts

DOCUMENT = (Path(__file__).parents[2] / "docs" / "schedulers.md").read_text()


@pytest.fixture
def patient(tmp_path: Path) -> Scheduler:
    """The policy of the document."""
    (code,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "patient_policy.py"
    path.write_text(code)
    return SCHEDULERS.create(f"{path}:Patient", {"patience": "5"})


def test_its_policy_does_what_it_says(patient: Scheduler) -> None:
    jobs = [
        JobSpec("a", 0, 3, 100, 100),
        JobSpec("head", 1, 4, 5, 5),
        JobSpec("overtakes", 2, 1, 10, 10),
        JobSpec("waits", 7, 1, 10, 10),
    ]
    assert starts(patient, jobs, 4) == {"a": 0, "overtakes": 2, "head": 100, "waits": 105}


@pytest.mark.parametrize("names", [SCHEDULERS.all(), get_args(OrderName), get_args(SelectionName)])
def test_it_names_all_there_are(names: list[str]) -> None:
    assert [name for name in names if f"`{name}`" not in DOCUMENT] == []


def test_what_it_says_of_the_cluster_is_there() -> None:
    cluster = set(dir(Cluster)) | {"now", "nb_free", "queue", "running", "quiet"}
    assert set(re.findall(r"`cluster\.(\w+)", DOCUMENT)) <= cluster
