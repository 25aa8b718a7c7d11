"""What docs/schedulers.md says: its policy runs, and it names all there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.cluster import Order
from batsched_py.schedulers.orders import OrderName
from batsched_py.schedulers.selection import SelectionName
from batsched_py.testing import JobSpec, Workbench, starts

DOCUMENT = (Path(__file__).parents[2] / "docs" / "schedulers.md").read_text()


@pytest.fixture
def patient(tmp_path: Path) -> Scheduler:
    """The policy of the document."""
    code = re.findall(r"^```python\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)[0]
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


def public(cls: type) -> set[str]:
    """What an object of a class offers: its methods and properties, and the attributes that it declares."""
    return {name for name in {*cls.__annotations__, *dir(cls)} if not name.startswith("_")}


def test_its_tables_say_all_that_a_policy_sees_and_says() -> None:
    assert set(re.findall(r"`cluster\.(\w+)", DOCUMENT)) == public(Cluster)
    assert set(re.findall(r"`job\.(\w+)", DOCUMENT)) == {
        name for name in dir(Job) if not name.startswith("_")
    }


@pytest.mark.parametrize("method", ["start", "fitting", "switch", "expect", "order_queue"])
def test_its_tables_name_the_parameters(method: str) -> None:
    (named,) = re.findall(rf"`cluster\.{method}\(([\w, ]*)\)`", DOCUMENT)
    assert named.split(", ") == list(inspect.signature(getattr(Cluster, method)).parameters)[1:]


def test_its_order_is_one() -> None:
    code = re.findall(r"^```python\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)[1]
    names: dict[str, Order] = {}
    exec(code, names)
    bench = Workbench(8, "fcfs")
    bench.submit(Job("w!wide", 0.0, 8, 60.0, "p"), Job("w!narrow", 30.0, 1, 60.0, "p"))
    bench.cluster.order_queue(names["large_ones_later"])
    assert [job.name for job in bench.cluster.queue] == ["narrow", "wide"]
