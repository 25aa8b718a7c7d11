"""Attributes that jobs get from columns of a log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import batsched_py as bp
from batsched_py import native
from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError
from batsched_py.workload.read import read_workload
from batsched_py.workload.requests import NodeWords

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "job_attributes.py"

TABLE = """submit,run_time,requested_processors,user,used_memory,account,joules
5,10,2,7,100,physics,3.5
0,10,4,8,-1,,
9,10,1,7,100,physics,3.5
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE)
    return path


def extras(path: Path, *wanted: str, **more: Any) -> list[dict[str, Any]]:
    return [dict(job.extra) for job in read_workload(path, "w0", attributes=wanted, **more).jobs]


def test_any_column_becomes_an_attribute_where_it_is_known(jobs: Path) -> None:
    assert extras(jobs, "account", "energy=joules", "used_memory") == [
        {"user": 8},
        {"user": 7, "account": "physics", "energy": 3.5, "used_memory": 100.0},
        {"user": 7, "account": "physics", "energy": 3.5, "used_memory": 100.0},
    ]


def test_jobs_with_the_same_attributes_share_them(jobs: Path) -> None:
    made = read_workload(jobs, "w0", attributes=["account"]).jobs
    assert made[1].extra is made[2].extra


def test_fields_of_an_swf_log(tmp_path: Path) -> None:
    made = extras(ROOT / "workloads" / "sample.swf", "asked=requested_time")
    log = bp.read_log(ROOT / "workloads" / "sample.swf").columns
    asked = log.requested_time[log.processors > 0]
    assert [extra.get("asked", -1) for extra in made] == np.where(asked == -1, -1, asked).tolist()


def test_a_class_makes_them_of_all_columns_beside_requests(jobs: Path) -> None:
    watts = f"{EXAMPLE}:Watts"
    made = extras(jobs, watts, "account")
    assert [extra["watts"] for extra in made] == [480.0, 240.0, 120.0]
    assert [extra.get("account") for extra in made] == [None, "physics", "physics"]
    jobs.write_text(TABLE.replace("joules", "gpus").replace("3.5", "2").replace("account", "watts"))
    made = extras(jobs, watts, words=NodeWords(resources=frozenset({"gpu"})))
    assert [extra.get("request") for extra in made] == [
        None,
        {"per_job": {"gpu": 2}},
        {"per_job": {"gpu": 2}},
    ]
    assert made[1]["watts"] == "physics"


@pytest.mark.parametrize("engine", ["native", "python"])
def test_policies_see_them(jobs: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "python":
        monkeypatch.setattr(native, "library", None)
    seen = {}

    class Looking(bp.Scheduler):
        """Starts what fits, and looks at it."""

        name = "looking"

        def schedule(self, cluster: bp.Cluster) -> None:
            for job in cluster.fitting():
                seen[job.id] = job.extra.get("account")
                cluster.start(job)

    bp.simulate(jobs, Looking, hosts=4, attribute=["account"], progress=False)
    assert seen == {"w0!1": None, "w0!2": "physics", "w0!3": "physics"}


@pytest.mark.parametrize(
    "code, message",
    [
        ("return {'watts': 1 / 0}", r"attributes '.*own.py:Own' failed: ZeroDivisionError.*own.py:5"),
        ("return 7", "gives 7, and not attributes by name"),
        ("return {'user': 7}", "jobs have 'user' already"),
        ("return {'watts': object()}", "job 1: attributes: Encoding objects of type object"),
    ],
)
def test_mistakes_of_a_class_are_named(jobs: Path, code: str, message: str) -> None:
    own = jobs.with_name("own.py")
    own.write_text(
        "from batsched_py.workload.attributes import JobAttributes\n\n"
        f"class Own(JobAttributes):\n    def of(self, record):\n        {code}\n"
    )
    with pytest.raises(InputError, match=message):
        extras(jobs, f"{own}:Own")


def test_what_is_no_column(jobs: Path) -> None:
    with pytest.raises(
        InputError, match="there is no column 'colour' for an attribute; there are job_number"
    ):
        extras(jobs, "colour")
    with pytest.raises(InputError, match="jobs have 'user' already"):
        extras(jobs, "user")
    workload = ROOT / "workloads" / "sample.json"
    with pytest.raises(InputError, match="leave out --attribute"):
        extras(workload, "colour")


def test_a_plan_names_them_and_the_code_is_an_input(jobs: Path) -> None:
    jobs.with_name("own.py").write_bytes(EXAMPLE.read_bytes())
    plan = jobs.with_name("plan.toml")
    plan.write_text(
        '[logs]\njobs = { file = "jobs.csv", attributes = ["account", "own.py:Watts"] }\n'
        "[platforms]\nfour = { hosts = 4 }\n[schedulers]\neasy = {}\n"
    )
    (run,) = (made := read_plan(plan)).runs
    own = jobs.with_name("own.py").resolve()
    assert run.experiment.scenario.workloads.attributes == ("account", f"{own}:Watts")
    assert str(own) in run.experiment.files
    assert [each.name for each in made.inputs] == ["own.py"]


def test_the_documentation_shows_the_example() -> None:
    (shown,) = re.findall(
        r"```python\n(from collections.abc.*?)```", (ROOT / "docs" / "workloads.md").read_text(), re.S
    )
    assert shown in EXAMPLE.read_text()
