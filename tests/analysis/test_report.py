"""What the charts of the report are made of."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

import batsched_py as bp
from batsched_py.analysis.plots.kinds.submitters import graph_statistics
from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.report import Report, write_report
from batsched_py.analysis.report.figures import COLUMNS, FIGURES, PERIODS, ROWS, Subject, curves, gantt
from batsched_py.workload.sessions import Delimiter
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload
from tests.runs import Row, run_of, write_log

DAY = 86400.0


def points(x: list[float], y: list[float]) -> list[tuple[float, float]]:
    """The points of a curve, of which only the ends may have been told."""
    return list(zip(x if len(x) == len(y) else np.linspace(x[0], x[-1], len(y)).tolist(), y, strict=True))


def pixels(chart: dict) -> np.ndarray:
    """The image of a Gantt chart, from 0 for busy to 1 for idle, host 0 in the last row."""
    image = imread(io.BytesIO(base64.b64decode(chart["image"])))
    return image / image.max()


@pytest.fixture
def late(tmp_path: Path) -> Subject:
    """Two users, the second of whom comes an hour late with both jobs."""
    notes = ("user=1 session=0 recorded=0", "user=2 session=0 recorded=0", "user=2 session=1 recorded=7200")
    rows = [
        Row(1, 0, 0, 3600, "0-1", note=notes[0]),
        Row(2, 3600, 3600, 7200, "0", note=notes[1]),
        Row(3, 10800, 14400, 18000, "0-1", note=notes[2]),
    ]
    return Subject(run_of(tmp_path, rows))


def test_every_job_is_in_a_period(late: Subject) -> None:
    for title in ("Submissions", "Throughput"):
        rates = points(*curves(late)[title])
        period = rates[1][0] - rates[0][0]
        assert sum(rate * period for _, rate in rates) == pytest.approx(3, rel=1e-4), title


@pytest.mark.parametrize("end", [1.0, 50.0, 3 * DAY, 400 * DAY])
def test_periods_of_any_run_fit_into_each_other(tmp_path: Path, end: float) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, end, "0")])
    middles = [x for x, _ in points(*curves(Subject(run))["Utilization"])]
    doublings = np.log2((middles[1] - middles[0]) / DAY)
    assert doublings == pytest.approx(round(doublings), abs=1e-4)
    assert PERIODS / 2 <= len(middles) <= PERIODS + 1


def test_utilization_is_the_share_of_busy_hosts(late: Subject) -> None:
    busy = dict.fromkeys((100.0, 50.0, 0.0), 0)
    for _, share in points(*curves(late)["Utilization"])[:-1]:
        busy[share] = busy.get(share, 0) + 1
    assert busy[100.0] > busy[50.0] > 0
    assert busy[0.0] > 0


def test_the_queue_is_as_long_as_jobs_wait(late: Subject) -> None:
    queue = points(*curves(late)["Queue"])
    assert {length for time, length in queue if 10900 < time < 14300} == {1}
    assert {length for time, length in queue if not 10700 < time < 14500} == {0}


def test_the_classes_of_jobs_have_curves_of_their_own(tmp_path: Path) -> None:
    rows = [
        Row(1, 0, 0, 3600, "0-8"),
        Row(2, 0, 3600, 3660, "0-8"),
        Row(3, 0, 0, 3600, "10"),
        Row(4, 0, 3600, 9000, "10-17"),
    ]
    found = curves(Subject(run_of(tmp_path, rows)))
    by_class = {title: points(*curve) for title, curve in found.items() if ": " in title}
    assert by_class == {
        "Waiting times: short, wide": [(0, 50), (3600, 100)],
        "Waiting times: short, narrow": [(0, 100)],
        "Waiting times: long, narrow": [(3600, 100)],
        "Bounded slowdowns: short, wide": [(1, 50), (61, 100)],
        "Bounded slowdowns: short, narrow": [(1, 100)],
        "Bounded slowdowns: long, narrow": [(1.66667, 100)],
    }


@pytest.mark.parametrize("count", [1, 7, 1500])
def test_a_curve_of_a_class_has_the_share_of_its_jobs_that_wait_no_longer(tmp_path: Path, count: int) -> None:
    waits = np.random.default_rng(count).integers(0, 900, count)
    rows = [Row(number, 0, wait, wait + 60, "0") for number, wait in enumerate(waits.tolist(), start=1)]
    found = points(*curves(Subject(run_of(tmp_path, rows)))["Waiting times: short, narrow"])
    assert [share for _, share in found] == pytest.approx(
        [100 * float(np.mean(waits <= wait)) for wait, _ in found], rel=1e-5
    )
    assert (found[0][0], found[-1]) == (waits.min(), (waits.max(), 100))
    assert len(found) == min(len(set(waits)), 101)


def test_without_a_user_there_are_no_shares_of_users(late: Subject) -> None:
    nobody = pd.DataFrame({"longest_path": [], "arity": []})
    assert not {"Longest paths", "Arities"} & curves(replace(late, graphs=nobody)).keys()


def test_the_longest_wait_is_that_of_all_jobs(late: Subject) -> None:
    waits = points(*curves(late)["Waiting times"])
    assert waits[0] == (0, 0)
    assert waits[-1] == (100, 3600)


def test_users_are_dots_by_their_number_of_jobs(late: Subject) -> None:
    drawn = curves(late)
    assert points(*drawn["Mean lateness of users"]) == [(1, 0), (2, 3600)]
    assert points(*drawn["Additional lateness of users"]) == [(2, 7200)]
    assert points(*drawn["Additional lateness by size"]) == [(3, 2400)]
    assert points(*drawn["User arrivals"]) == [(0, 1), (3600, 2)]
    assert points(*drawn["Differences of submission times"])[-1] == (100, 3600)


def test_who_is_never_late_is_not_in_figures_of_lateness(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, 10, "0", note="user=1 recorded=0")])
    assert [title for title in curves(Subject(run)) if "ateness" in title or "Differences" in title] == []


def test_digits_that_a_schedule_does_not_have_make_nobody_late(tmp_path: Path) -> None:
    """Under another load a log has times like these; they are written with six decimals."""
    run = run_of(
        tmp_path, [Row(1, 313173.722628, 400000, 400010, "0", note="user=1 recorded=313173.7226277372")]
    )
    assert [title for title in curves(Subject(run)) if "ateness" in title or "Differences" in title] == []


def test_the_log_tells_the_hour_of_the_week(tmp_path: Path) -> None:
    jobs = [(1, 0, 0, 60, 1, 7), (2, 3600, 0, 60, 1, 7)]
    log = read_swf(write_log(tmp_path / "log.swf", jobs, "; UnixStartTime: 345600\n"))  # 1970-01-05, a Monday
    run = run_of(tmp_path, [Row(1, 0, 0, 60, "0"), Row(2, 3600, 3600, 3660, "0")])
    assert "Submissions by week and hour" not in curves(Subject(run))
    counts = points(*curves(Subject(replace(run, log=log)))["Submissions by week and hour"])
    assert [hour for hour, count in counts if count] == [0.5, 1.5]
    assert len(counts) == 168


def test_session_graphs_are_drawn_by_the_share_of_users(tmp_path: Path) -> None:
    jobs = [(1, 0, 0, 60, 1, 7), (2, 9000, 0, 60, 1, 7), (3, 0, 0, 60, 1, 8)]
    log = read_swf(write_log(tmp_path / "log.swf", jobs))
    graphs = graph_statistics(swf_to_workload(log), [Delimiter.parse("arrival:60")])
    run = run_of(tmp_path, [Row(1, 0, 0, 60, "0")])
    assert points(*curves(Subject(run, graphs))["Longest paths"]) == [(1, 50), (2, 100)]


def test_titles_tell_figures_apart() -> None:
    assert len({figure.title for figure in FIGURES}) == len(FIGURES)


def test_busy_hosts_are_dark_in_the_gantt_chart(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, 100, "0"), Row(2, 0, 50, 100, "1-3")], nb_hosts=8)
    chart = gantt(run, most=0)
    image = pixels(chart)
    assert (chart["hosts"], chart["end"], image.shape) == (8, 100, (8, COLUMNS))
    assert (image[7] == 0).all()
    assert (image[4:7, : COLUMNS // 2] == 1).all()
    assert (image[4:7, COLUMNS // 2 :] == 0).all()
    assert (image[:4] == 1).all()


def test_many_hosts_share_the_rows_of_the_gantt_chart(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, 100, f"0-{2 * ROWS - 1}")], nb_hosts=4 * ROWS)
    image = pixels(gantt(run, most=0))
    assert image.shape == (ROWS, COLUMNS)
    assert (image[ROWS // 2 :] == 0).all()
    assert (image[: ROWS // 2] == 1).all()


def test_remarks_of_the_policy_stand_under_the_jobs_of_the_gantt_chart(tmp_path: Path) -> None:
    rows = [Row(1, 0, 0, 10, "0-3"), Row(2, 1, 10, 20, "0")]
    (tmp_path / "run_remarks.csv").write_text(
        'time,job_id,start,text\n1,w0!2,10,"waits, alas"\n2,w0!2,,still\n'
    )
    chart = gantt(run_of(tmp_path, rows, nb_hosts=8), most=3)
    assert chart["remarks"] == {1: ["at 1: waits, alas, to start by 10", "at 2: still"]}


def test_few_jobs_are_in_the_gantt_chart_one_by_one(tmp_path: Path) -> None:
    rows = [Row(7, 0, 50, 100.5, "1-3"), Row(8, 0), Row(9, 0, 0, 100, "0 4")]
    chart = gantt(run_of(tmp_path, rows, nb_hosts=8), most=3)
    assert chart == {
        "hosts": 8,
        "end": 100.5,
        "jobs": ["9", "7"],
        "job": [1, 0, 0],
        "from": [50, 0, 0],
        "to": [100.5, 100, 100],
        "low": [1, 0, 4],
        "high": [4, 1, 5],
    }


def test_how_many_rows_there_are_is_told_before_the_first_is_drawn(tmp_path: Path) -> None:
    """A year of jobs takes long to draw, so that whoever waits would not know for what."""
    told: list[tuple[int, int]] = []
    runs = [Measured(f"run{number}") for number in range(3)]
    report = Report("A page", "", ["makespan"], runs, nothing, {"log": partial(nothing, runs[0])})
    write_report(tmp_path / "page.html", report, lambda *steps: told.append(steps))
    assert told == [(rows, 4) for rows in range(5)]


def test_the_most_loaded_links_of_a_run_are_listed(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text(
        """{"nb_res": 4, "jobs": [{"id": "a", "subtime": 0, "res": 2, "profile": "p"},
        {"id": "b", "subtime": 0, "res": 2, "profile": "p"}],
        "profiles": {"p": {"type": "parallel_homogeneous", "cpu": 0, "com": 5e8}}}"""
    )
    bp.simulate(
        tmp_path / "jobs.json",
        "easy",
        hosts=4,
        bandwidth="1Gbps",
        backbone="1Gbps",
        links=True,
        export=tmp_path / "out",
    )
    subject = Subject(read_run(tmp_path / "out_jobs.csv", "out"))
    load = points(*curves(subject)["Load of a link"])
    assert load[0][1] == pytest.approx(100, rel=0.05)
    runs = [Measured("recorded"), Measured("not")]
    report = Report(
        "A page", "", ["makespan"], runs, lambda run: subject if run.name == "recorded" else None, {}
    )
    write_report(tmp_path / "page.html", report)
    page = (tmp_path / "page.html").read_text()
    assert page.count("<h3>recorded</h3>") == 1
    assert "<h3>not</h3>" not in page
    assert "<td>backbone</td><td>100.0%</td><td>2 GB</td><td>16 s</td>" in page
    report = Report("A page", "", ["makespan"], runs, nothing, {})
    write_report(tmp_path / "page.html", report)
    assert "Most loaded links" not in (tmp_path / "page.html").read_text()


class Measured:
    """A run of which nothing but its name is known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.axes = {"scheduler": name}
        self.metrics = {"makespan": 1.0}
        self.files: dict[str, Path] = {}
        self.unstable = ""
        self.remark = ""


def nothing(run: Measured) -> None:
    """There is nothing to draw."""
