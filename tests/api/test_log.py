"""Logs in Python: changes as methods, and how each log is made again."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.workload.changes import CHANGES
from batsched_py.workload.recipe import log_from_recipe
from batsched_py.workload.swf.log import COLUMNS, SwfLog

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"

#: What each change is given here.
OPTIONS: dict[str, dict[str, Any]] = {
    "anonymise": {"seed": 5},
    "dominating": {"share": 0.1},
    "estimates": {"rule": "round", "seed": 2},
    "first": {"jobs": 100},
    "flurries": {},
    "load": {"factor": 1.5, "by": "sizes"},
    "merge": {"file": str(SAMPLE)},
    "part": {"number": 2},
    "period": {"start": "7d", "end": "21d"},
    "queues": {"keep": (1,)},
    "partitions": {"keep": (-1,)},
    "shake": {"seed": 3},
    "sizes": {"least": 2, "most": 16},
    "users": {"drop": (3, 7)},
}


def same(one: SwfLog, other: SwfLog) -> bool:
    return one.header == other.header and all(
        np.array_equal(getattr(one, column), getattr(other, column)) for column in COLUMNS
    )


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(SAMPLE)


@pytest.mark.parametrize("name", CHANGES.all())
def test_every_change_is_a_method_with_the_same_options(name: str) -> None:
    parameters = list(inspect.signature(getattr(bp.Log, name)).parameters.values())[1:]
    wanted = {
        field.name: inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        for field in dataclasses.fields(CHANGES.find(name))  # type: ignore[arg-type]
    }
    assert {parameter.name: parameter.default for parameter in parameters} == wanted


@pytest.mark.parametrize("name", CHANGES.all())
def test_a_changed_log_is_made_again_by_its_recipe(name: str, log: bp.Log) -> None:
    changed = getattr(log, name)(**OPTIONS[name]).first(50)
    assert changed.recipe is not None
    assert same(log_from_recipe(changed.recipe), changed.columns)
    assert log.recipe == {"file": str(SAMPLE)}, "the log itself was changed"


def test_changes_may_be_written_as_on_the_command_line(log: bp.Log) -> None:
    assert same(log.change("first jobs=500", "load factor=1.2").columns, log.first(500).load(1.2).columns)
    assert log.first(500).load(1.2).name == "sample.swf, first jobs=500, load factor=1.2"


def test_parts_are_what_part_gives_one_by_one(log: bp.Log) -> None:
    parts = log.parts("28d")
    assert [len(part) for part in parts] == [len(log.part(number, "28d")) for number in (1, 2)]
    assert parts[1].recipe == log.part(2, "28d").recipe


def test_a_bad_option_is_one_line(log: bp.Log) -> None:
    with pytest.raises(InputError, match=r"change 'load': Expected `float` > 0.0"):
        log.load(-1)


@pytest.mark.parametrize("like", [None, "log", "file"])
def test_a_generated_log_is_made_again_by_its_recipe(like: str | None, log: bp.Log) -> None:
    if like is None:
        made = bp.generate("lublin", 200, seed=3, processors=64)
    else:
        made = bp.generate("naive", 200, seed=3, like=log if like == "log" else SAMPLE)
    assert len(made) == 200
    assert made.recipe is not None
    assert same(log_from_recipe(made.recipe), made.columns)


def test_nobody_knows_how_to_make_a_log_again_that_is_like_a_changed_one(log: bp.Log) -> None:
    assert bp.generate("naive", 50, like=log.first(500)).recipe is None


def test_it_says_what_it_is(log: bp.Log) -> None:
    assert repr(log) == "<Log sample.swf: 3,000 jobs, 50 users, 64 processors, 57.33 d>"
    assert "<td>3,000 jobs</td>" in log._repr_html_()
    assert log.describe().load.jobs == len(log) == len(log.jobs) == 3000
    assert log.jobs.index.name == "job_id"


def test_its_jobs_have_the_ids_that_results_have(log: bp.Log) -> None:
    few = log.first(20)
    ran = bp.simulate(few, "fcfs").jobs.set_index("job_id")["execution_time"]
    assert ran.sort_index().equals(few.jobs["run_time"].rename("execution_time").sort_index())


def test_it_is_saved_in_any_format(log: bp.Log, tmp_path: Path) -> None:
    for ending in ("swf.gz", "csv"):
        log.save(tmp_path / f"log.{ending}")
        assert (bp.read_log(tmp_path / f"log.{ending}").jobs.run_time == log.jobs.run_time).all()
