"""Logs as a plan writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.errors import InputError
from batsched_py.workload.changes import HISTORY
from batsched_py.workload.models.minh_wolters import Naive
from batsched_py.workload.recipe import log_from_recipe, save_model
from batsched_py.workload.sources import read_log


def test_a_file_and_changes(root: Path) -> None:
    recipe = {"file": "sample.swf", "changes": ["first jobs=100", "load factor=1.5 by=run-times"]}
    log = log_from_recipe(recipe, root / "workloads")
    assert len(log) == 100
    assert [line.split(":")[0] for line in log.header[HISTORY].split("\n")] == [
        "first jobs=100",
        "load factor=1.5 by=run-times",
    ]


def test_a_model_with_options() -> None:
    log = log_from_recipe({"model": "lublin", "jobs": 50, "seed": 2, "types": "batch", "processors": 32})
    assert (len(log), log.machine_size, set(log.queue.tolist())) == (50, 32, {1})


def test_a_model_that_learns_or_has_learned(root: Path, tmp_path: Path) -> None:
    sample = root / "workloads" / "sample.swf"
    save_model(tmp_path / "naive.json", Naive().fit(read_log(sample)))
    like = log_from_recipe({"model": "naive", "like": str(sample), "jobs": 20, "seed": 1})
    fitted = log_from_recipe({"model": "naive", "fitted": "naive.json", "jobs": 20, "seed": 1}, tmp_path)
    assert like.submit.tolist() == fitted.submit.tolist()


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({}, "a log needs either a file or a model, not nothing"),
        ({"file": "a.swf", "model": "lublin"}, "a log needs either a file or a model, not file, model"),
        ({"file": "a.swf", "jobs": 3}, "a.swf: a file has no option 'jobs'"),
        ({"model": "lublin"}, "model 'lublin': say how many jobs it shall generate"),
        (
            {"model": "lublin", "jobs": 5, "like": "a.swf"},
            "model 'lublin' learns from no log; leave out like",
        ),
        (
            {"model": "naive", "jobs": 5},
            "model 'naive' learns from a log: give either like = LOG or fitted = FILE",
        ),
        ({"model": "lublin", "jobs": 5, "speed": 2}, "model 'lublin' has no option 'speed'"),
        ({"model": "lublin", "jobs": 5, "changes": "first"}, "changes must be a list of texts"),
        ({"file": "nowhere.swf"}, "nowhere.swf: there is no such file"),
    ],
)
def test_a_mistake_is_told_in_one_line(recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        log_from_recipe(recipe)
    assert message in str(error.value)
