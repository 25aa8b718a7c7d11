"""AccaSim's generator: cycles and days of the log, units with limits, and work that stays the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from batsched_py.analysis.plots.kinds.submitters import CYCLES, distance, shares
from batsched_py.analysis.plots.runs import recorded_run
from batsched_py.errors import InputError
from batsched_py.workload.description.jobs import jobs_that_ran, kolmogorov_smirnov, requested
from batsched_py.workload.models import MODELS
from batsched_py.workload.models.slots import SlotCalendar, Slots, _rates_of_days, _shares_of_sizes
from batsched_py.workload.sources import read_log, write_log
from batsched_py.workload.swf.log import SwfLog

SAMPLE = Path(__file__).parents[3] / "workloads" / "sample.swf"
DAY = 86400.0


@pytest.fixture(scope="module")
def sample() -> SwfLog:
    return jobs_that_ran(read_log(SAMPLE))


def days(log: SwfLog) -> float:
    return float(log.submit[-1] - log.submit[0]) / DAY


def apart(log: SwfLog, made: SwfLog) -> dict[str, float]:
    """How far apart the shares of hours, weekdays and months are."""
    counted = [shares(recorded_run(each)) for each in (log, made)]
    return {name: distance(counted, name) for name in CYCLES}


def test_what_is_learned_is_no_option() -> None:
    with pytest.raises(InputError, match="has no option 'parameters'"):
        MODELS.create("slots", {"parameters": "{}"})


def test_time_is_spent_where_the_weights_are() -> None:
    slots = [0.0] * 18 + [1.0] * 12 + [0.0] * 18
    calendar = SlotCalendar(19_723, slots, [1, 1, 1, 1, 1, 0, 0], [1.0] * 12)  # 2024-01-01, a Monday
    clock = calendar.clock(np.array([0.0, 0.5, 4.999, 5.5]))
    assert clock[1:] / 3600 == pytest.approx([12, 4 * 24 + 14.994, 7 * 24 + 12])
    assert calendar.spent(clock)[1:] == pytest.approx([0.5, 4.999, 5.5])


def test_days_and_cycles_are_those_of_the_log(sample: SwfLog) -> None:
    model = Slots().fit(sample)
    made = model.generate(len(sample), seed=1)
    lengths = [days(model.generate(len(sample), seed)) for seed in range(8)]
    assert np.mean(lengths) == pytest.approx(days(sample), rel=0.05)
    assert max(apart(sample, made).values()) < 0.06


def test_a_shorter_log_has_the_rate_of_the_log(sample: SwfLog) -> None:
    made = Slots().fit(sample).generate(len(sample) // 2, seed=1)
    assert days(made) == pytest.approx(days(sample) / 2, rel=0.15)


def test_fewer_jobs_on_as_many_days_keep_the_months(sample: SwfLog) -> None:
    made = Slots(days=days(sample)).fit(sample).generate(len(sample) // 2, seed=1)
    assert days(made) == pytest.approx(days(sample), rel=0.01)
    assert max(apart(sample, made).values()) < 0.08


def test_a_log_of_centuries_is_refused(sample: SwfLog) -> None:
    late = np.append(sample.submit[:-1], 1e10)
    with pytest.raises(InputError, match="covers more than 100,000 days, as no log does"):
        Slots().fit(replace(sample, submit=late))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, furthest",
    [
        ("HPC2N-2002-2.2-cln", 0.03),
        ("KTH-SP2-1996-2.1-cln", 0.05),
        ("LLNL-Thunder-2007-1.1-cln", 0.05),
        ("SDSC-DS-2004-2.1-cln", 0.05),
    ],
)
def test_months_of_archived_logs(shared: Path, name: str, furthest: float) -> None:
    """The limit of the paper gives .15 between the months of HPC2N, and 870 days in place of 1,264."""
    log = jobs_that_ran(read_log(shared / "logs" / f"{name}.swf.gz"))
    model = Slots().fit(log)
    for seed in (1, 2, 3):
        made = model.generate(len(log), seed)
        assert days(made) == pytest.approx(days(log), rel=0.05)
        assert max(apart(log, made).values()) < furthest


def test_requests_are_within_the_limits_and_keep_the_work(sample: SwfLog, tmp_path: Path) -> None:
    model = Slots(limits="core:1-4,memory:256M-1G,gpu:0-2", performance="gpu:560", speed=1.5).fit(sample)
    made = model.generate(3000, seed=1)
    requests = [json.loads(text) for text in made.more["request"]]
    gpus = np.array([request.get("per_node", {}).get("gpu", 0) for request in requests])
    memory = [int(request["per_node"]["memory"].removesuffix(" kB")) for request in requests]
    cores, nodes = (np.array([request[key] for request in requests]) for key in ("cores", "nodes"))
    assert set(gpus) == {0, 1, 2}
    assert set(cores) == {1, 2, 3, 4}
    assert 256 * 1024 <= min(memory) < max(memory) <= 1024**2
    assert (made.processors == cores * nodes).all()
    assert made.processors.max() <= model.machine(model.parameters)
    assert (made.more["gpus"] == gpus * nodes).all()
    work = made.run_time * nodes * (1.5 * cores + 560 * gpus)
    assert made.more["work"] == pytest.approx(work)
    long = made.run_time > 60  # of shorter ones, whole seconds are much
    jobs = jobs_that_ran(sample)
    without = made.run_time[long & (gpus == 0)].mean()
    assert made.run_time[gpus == 2].mean() < without / 50
    assert (
        kolmogorov_smirnov(
            (jobs.run_time * requested(jobs))[jobs.run_time > 60],
            work[gpus == 0][made.run_time[gpus == 0] > 60],
        )
        < 0.1
    )
    write_log(tmp_path / "made.json", made)
    kept = json.loads((tmp_path / "made.json").read_text())["jobs"]
    assert [job["request"] for job in kept] == requests


@pytest.mark.parametrize(
    "options, message",
    [
        ({"limits": "gpu:0-2"}, "give the cores of a node"),
        ({"limits": "core"}, "write UNIT:VALUE"),
        ({"limits": "core:8-1"}, "the least is more than the most"),
        ({"limits": "core:1-4,core:2"}, "a unit is given twice"),
        ({"limits": "core:1-4,gpu:x-2"}, "gpu:x-2: gpu: 'x' is not a whole number"),
        ({"performance": "gpu:2"}, "limits does not say how many gpu"),
        ({"limits": "core:1", "performance": "core:2"}, "the option speed"),
        ({"limits": "core:1,gpu:1", "performance": "gpu:fast"}, "give a number above 0"),
    ],
)
def test_what_is_no_limit_is_refused(sample: SwfLog, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Slots(**options).fit(sample).generate(5, seed=0)


def test_a_machine_without_processors_is_refused() -> None:
    with pytest.raises(InputError, match=r"Expected `int` >= 1 - at `\$.processors`"):
        MODELS.create("slots", {"processors": "0"})


def test_days_count_as_far_as_they_belong_to_the_log() -> None:
    """From Monday noon to noon a fortnight later: twice as many jobs an hour on Sundays, and in February."""
    hours = np.arange(12.0, 14 * 24 + 12)
    sunday, february = hours // 24 % 7 == 6, hours >= 3 * 24
    jobs = 10 * (1 + sunday) * (1 + february)
    clock = np.repeat(hours * 3600 + 1, jobs)
    weekdays, months = _rates_of_days(19_751, clock)  # 2024-01-29, a Monday
    mean = jobs.sum() / 14
    monday, tuesday = (10 * 12 + 20 * 24 + 20 * 12) / 2, (10 + 20) * 24 / 2
    thursday, on_sunday = 20 * 24, 40 * 24
    expected = [monday, tuesday, tuesday, thursday, thursday, thursday, on_sunday]
    assert weekdays == pytest.approx(np.array(expected) / mean, rel=0.03)
    assert months[:2] == pytest.approx([10 * 24 / mean, jobs[february].sum() / 11.5 / mean], rel=0.03)
    assert months[2:] == [1.0] * 10


def test_what_lublins_sizes_are_drawn_from() -> None:
    """Of six jobs two are serial, and sizes of 2 and 8 are powers of two; 2.5 below the top is the middle."""
    found = _shares_of_sizes(np.array([1, 1, 2, 3, 8, 24]))
    logarithms = np.log2([2, 3, 8, 24])
    assert found["serial"] == pytest.approx(2 / 6)
    assert found["power_of_two"] == pytest.approx(2 / 6)
    assert (found["low"], found["high"]) == (1.0, pytest.approx(logarithms[3]))
    assert found["middle"] == pytest.approx(logarithms[3] - 2.5)
    assert found["below"] == pytest.approx(2 / 4)
    alone = {"serial": 1.0, "power_of_two": 0.0, "low": 0.0, "middle": 0.0, "high": 0.0, "below": 1.0}
    assert _shares_of_sizes(np.array([1, 1])) == alone
