"""An experiment, printed as a command: whoever reads that has the same experiment."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batsched_py.cli import run
from batsched_py.cli.options import struct_options
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment import run as line
from batsched_py.protocol.events import Settings
from tests.experiment.commands import handed, parsed
from tests.experiment.strategies import experiments


@given(experiments)
def test_what_run_is_told_is_the_experiment(experiment: Experiment) -> None:
    program, command, *options, flag, prefix = shlex.split(line.run_command(experiment, "some where/out"))
    assert (program, command, flag, prefix) == ("batsched-py", "run", "-e", "some where/out")
    assert parsed(options) == experiment


@given(experiments)
def test_batsim_and_serve_together_are_told_what_run_is(experiment: Experiment) -> None:
    scenario = handed(line.options_of(experiment.scenario), struct_options("scenario", Scenario))
    actors, workloads = struct_options("actors", Actors), struct_options("workloads", Workloads)
    decides = handed(line.serve_options(experiment), actors, workloads)
    together = Experiment(scenario=scenario["scenario"], actors=decides["actors"], remarks=experiment.remarks)
    assert together == experiment
    submitted = Workloads() if experiment.actors.users is None else experiment.scenario.workloads
    assert decides["workloads"] == submitted


@pytest.mark.parametrize(
    ("more", "are_all"),
    [
        ([], False),
        (["--walltime=max", "--enable-profile-reuse", "-o", "order=-walltime"], False),
        (["-wother.swf"], True),
        (["-E", "--input-option", "-x=y"], True),
    ],
)
def test_options_that_nobody_gives_are_not_made(more: list[str], are_all: bool) -> None:
    words = ["-w", "log.swf", "-s", "easy", *more]
    context = run.run_command.make_context("run", list(words))
    assert ("weibull_shape" in context.params) == are_all
    whole = handed(words, struct_options("experiment", Experiment))["experiment"]
    assert parsed(words) == whole


def test_what_goes_without_saying_is_not_said() -> None:
    experiment = Experiment(
        scenario=Scenario(workloads=Workloads(files=("log.swf",))), actors=Actors(scheduler=Choice("easy"))
    )
    assert line.options_of(experiment) == ["-w", "log.swf", "-s", "easy"]


def test_what_is_unusual_is_said_in_batsims_words() -> None:
    scenario = Scenario(
        workloads=Workloads(files=("a.json", "b.json")),
        machine=Machine(file="power.xml", roles=("io:storage",), mmax=8),
        settings=Settings(compute_sharing=True, storage_sharing=False, dynamic_jobs=True),
        energy=True,
        events=("outage.txt",),
    )
    assert shlex.join(line.options_of(scenario)) == (
        "-w a.json -w b.json -p power.xml -r io:storage --mmax 8 --enable-dynamic-jobs "
        "--enable-compute-sharing --disable-storage-sharing -E --events outage.txt"
    )


FIELDS = [
    ("scenario", Scenario),
    ("machine", Machine),
    ("workloads", Workloads),
    ("settings", Settings),
    ("actors", Actors),
]


@pytest.mark.parametrize(("part", "kind"), FIELDS, ids=[name for name, _ in FIELDS])
@given(data=st.data())
def test_no_field_is_forgotten(part: str, kind: type, data: st.DataObject) -> None:
    """Two experiments that differ in one field alone have two commands."""
    one, other = data.draw(experiments), data.draw(experiments)
    field = data.draw(st.sampled_from(kind.__struct_fields__))
    changed = with_part(
        one, part, replace(part_of(one, part), **{field: getattr(part_of(other, part), field)})
    )
    assert (changed == one) == (line.options_of(changed) == line.options_of(one))


def part_of(experiment: Experiment, name: str) -> object:
    scenario = experiment.scenario
    return {"scenario": scenario, "actors": experiment.actors}.get(name) or getattr(scenario, name)


def with_part(experiment: Experiment, name: str, part: object) -> Experiment:
    if name in ("scenario", "actors"):
        return replace(experiment, **{name: part})
    return replace(experiment, scenario=replace(experiment.scenario, **{name: part}))
