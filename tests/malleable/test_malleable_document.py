"""The examples of the page on jobs of several sizes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from batsched_py.protocol.sizes import malleable_of, shapes_of
from batsched_py.simulator.setup import Setup
from batsched_py.workload.batsim_json import read_batsim_json
from tests.drive import platform, workload
from tests.power import run

PAGE = Path(__file__).parents[2] / "docs" / "malleable.md"
WORK = {
    "work": {"type": "delay", "delay": 100},
    "total": {"type": "parallel_homogeneous_total", "cpu": 1, "com": 0},
}


def test_its_jobs_can_be_read(tmp_path: Path) -> None:
    lines = re.findall(r"^    (\{.*?\}\})$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    jobs = [json.loads(line) | {"id": str(number)} for number, line in enumerate(lines)]
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 64, "jobs": jobs, "profiles": WORK}))
    one, nodes, malleable = read_batsim_json(tmp_path / "w.json", "w0").jobs
    assert [shape.job.size for shape in shapes_of(one)] == [2, 4, 8]
    assert [shape.run_time for shape in shapes_of(nodes)] == [210, 120, 40]
    assert shapes_of(nodes)[2].job.extra["request"] == {"nodes": 1, "exclusive": True}
    assert str(malleable_of(malleable)) == "2 to 16 hosts"


def test_its_policy_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    made: dict[str, Any] = {"__name__": "example"}
    exec(example, made)
    job = {"res": 4, "walltime": 500, "profile": "work", "malleable": {"min": 2, "max": 6}}
    jobs = workload({"id": "a"} | job, {"id": "b"} | job, profiles=WORK)
    run(Setup(platform(10), [jobs]), made["Greedy"](), tmp_path)
    assert (tmp_path / "out_resizes.csv").read_text().splitlines()[1:] == [
        "w0!a,0.000000,0-3,0-3 8-9",
        "w0!b,66.666667,4-7,0-1 4-7",
    ]
