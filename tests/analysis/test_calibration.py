"""How far a simulation may be trusted for a log."""

from __future__ import annotations

import io
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import batsched_py as bp
from batsched_py.analysis.calibration import (
    FEWEST_JOBS,
    WORDS,
    Calibration,
    Waits,
    all_figures,
    calibration,
    verdict,
)
from batsched_py.analysis.pages import Bar
from batsched_py.workload.swf.log import SwfLog
from tests.browser import headless
from tests.logs import log_of
from tests.processes import PATIENCE, call_here

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"
DAY = 86400


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of what EASY does with the sample on 48 hosts, with jobs cancelled while they waited."""
    path = tmp_path_factory.mktemp("log") / "played.swf"
    log = bp.simulate(bp.read_log(SAMPLE), "easy", hosts=48, reject_larger=True, progress=False).log
    bp.Log(log.columns).save(path)
    return path


@pytest.fixture(scope="module")
def found(played: Path) -> Calibration:
    return bp.calibrate(played, "easy", progress=False)


# --- waits ---------------------------------------------------------------------------------------


def waits(recorded: list[float], simulated: list[float]) -> Waits:
    return Waits.of(np.array(recorded, dtype=float), np.array(simulated, dtype=float))


def test_waits_are_near_within_ten_minutes_or_a_factor_of_two() -> None:
    recorded, simulated = [0, 0, 1000, 10_000, 10_000, 10_000], [600, 601, 400, 5000, 4999, 20_000]
    assert waits(recorded, simulated).near == pytest.approx(4 / 6)


def test_waits_of_some_jobs_measured_by_hand() -> None:
    found = waits([0, 3600, 7200, 36_000], [3600, 0, 7200, 39_600])
    assert (found.jobs, found.mean_recorded, found.mean_simulated) == (4, 11_700, 12_600)
    assert (found.median_recorded, found.median_simulated) == (5400, 5400)
    assert found.rank_correlation == pytest.approx(0.8)
    assert (found.near, found.only_recorded, found.only_simulated) == (0.5, 0.25, 0.25)
    assert found.factor == pytest.approx(12_600 / 11_700)


def test_means_of_next_to_nothing_do_not_differ() -> None:
    assert waits([0, 0], [0, 30]).factor == 1
    assert waits([0, 0], [0, 7200]).factor == float("inf")


# --- the verdict ---------------------------------------------------------------------------------


def test_a_replay_of_what_the_scheduler_did_itself_is_good(found: Calibration) -> None:
    assert found.verdict.trust == "good"
    assert found.waits is not None
    assert found.waits.factor == pytest.approx(1)
    assert found.waits.rank_correlation == pytest.approx(1)
    assert found.waits.near == 1
    assert found.utilization_simulated == pytest.approx(found.utilization_recorded)


def test_one_under_another_scheduler_is_not(played: Path) -> None:
    assert bp.calibrate(played, "fcfs", progress=False).verdict.trust == "poor"


@pytest.mark.parametrize(
    ("factor", "correlation", "near", "trust"),
    [
        (1.25, 0.7, 0.6, "good"),
        (1.26, 0.7, 0.6, "fair"),
        (1.25, 0.69, 0.6, "fair"),
        (1.25, 0.7, 0.59, "fair"),
        (2.0, 0.5, 0.4, "fair"),
        (2.01, 0.9, 0.9, "poor"),
        (1.0, 0.49, 0.9, "poor"),
        (1.0, None, 0.9, "poor"),
        (1.0, 0.9, 0.39, "poor"),
    ],
)
def test_each_of_three_measures_may_lower_it(
    factor: float, correlation: float | None, near: float, trust: str
) -> None:
    known = Waits(
        jobs=FEWEST_JOBS,
        mean_recorded=3600,
        mean_simulated=3600 * factor,
        median_recorded=0,
        median_simulated=0,
        rank_correlation=correlation,
        near=near,
        only_recorded=0,
        only_simulated=0,
    )
    assert verdict(known).trust == trust
    assert len(verdict(known).reasons) == 3


def test_without_recorded_waits_nothing_can_be_said(tmp_path: Path) -> None:
    log = replace(bp.read_log(SAMPLE).first(200).columns, wait=np.full(200, -1.0))
    found = bp.calibrate(bp.Log(log), progress=False)
    assert (found.waits, found.verdict.trust) == (None, "unknown")
    assert found.causes["without a recorded wait"] == 200
    found.save(tmp_path / "page.html")
    assert WORDS["unknown"] in (tmp_path / "page.html").read_text()


def test_the_rule_in_the_documentation_is_this_one(root: Path) -> None:
    from batsched_py.analysis.calibration import FAIR, GOOD

    page = (root / "docs" / "calibration.md").read_text()
    for name, (factor, correlation, near) in (("good", GOOD), ("fair", FAIR)):
        assert f"| {name} | {factor:g} | {correlation:g} | {near:.0%} |" in page


# --- groups and causes ---------------------------------------------------------------------------


def compared(log: SwfLog, hosts: int = 8) -> Calibration:
    replay = bp.simulate(bp.Log(log), "fcfs", hosts=hosts, reject_larger=True, progress=False)
    return calibration(log, replay.jobs, hosts, "fcfs")


def test_jobs_are_grouped_by_partition_class_month_and_user() -> None:
    header = {"UnixStartTime": "1704067200", "Partition": "1 batch\n2 gpu", "MaxProcs": "16"}
    log = log_of(
        header,
        submit=np.array([0, 20, 40, 60]) * DAY,
        wait=[0, 60, 120, 180],
        run_time=[60, 7200, 60, 60],
        requested_processors=[1, 1, 16, 1],
        partition=[1, 2, 2, 2],
        user=[5, 6, 6, 7],
    )
    groups = compared(log, hosts=16).groups
    counts = {
        grouping: {name: each.jobs for name, each in found.items()} for grouping, found in groups.items()
    }
    assert counts == {
        "partition": {"gpu": 3, "batch": 1},
        "class": {"long, narrow": 1, "short, narrow": 2, "short, wide": 1},
        "month": {"2024-01": 2, "2024-02": 1, "2024-03": 1},
        "user": {"6": 2, "5": 1, "7": 1},
    }
    assert groups["month"]["2024-01"].mean_recorded == 30


def test_a_log_without_a_date_has_spans_of_thirty_days() -> None:
    log = log_of(submit=np.array([0, 29, 31, 61]) * DAY, wait=0)
    assert {name: waits.jobs for name, waits in compared(log).groups["month"].items()} == {
        "30 days, 01": 2,
        "30 days, 02": 1,
        "30 days, 03": 1,
    }


def test_what_may_explain_differences_is_counted() -> None:
    log = log_of(
        {"MaxProcs": "8"},
        submit=[0, 10, 20, 30, 40, 50],
        wait=[0, 0, -1, 5, 0, 0],
        run_time=[1000, 1000, 10, 0, 10, 10],
        requested_processors=[6, 6, 1, 1, 9, 1],
        allocated_processors=[6, 6, 1, 0, 9, 1],
        requested_time=[2000, 500, 20, 20, 20, -1],
        status=[1, 1, 1, 5, 1, 1],
        preceding_job=[-1, -1, 2, -1, -1, -1],
        partition=[1, 1, 2, 2, 2, 2],
        queue=3,
    )
    assert compared(log).causes == {
        "larger than the machine, so they are rejected": 1,
        "started when more processors were in use than the machine has": 4,
        "cancelled while they waited": 1,
        "without a recorded wait": 1,
        "without a requested time": 1,
        "ran for longer than they had requested": 1,
        "name a preceding job, for which a simulation does not wait": 1,
        "in one of several partitions, which are simulated as one machine": 5,
    }


@pytest.mark.parametrize(
    ("header", "guessed", "cause"),
    [
        ({}, {}, "recorded on a machine of unknown size"),
        ({"MaxProcs": "9"}, {}, "recorded on a machine of 9 processors, not 8"),
        (
            {"MaxProcs": "8"},
            {"size of the machine: the most processors that were in use at once": 1},
            "recorded on a machine whose size was guessed from its use",
        ),
    ],
)
def test_an_uncertain_size_of_the_machine_is_told(
    header: dict[str, str], guessed: dict[str, int], cause: str
) -> None:
    log = replace(log_of(header, submit=[0, 1], wait=0, requested_time=60), guessed=guessed)
    assert compared(log).causes == {cause: 2}


def test_jobs_are_compared_that_ran_in_both() -> None:
    log = log_of(
        submit=[0, 1, 2, 3], wait=[0, 5, -1, 0], run_time=[9, 0, 9, 9], status=[1, 5, 1, 1],
        requested_processors=[1, 1, 1, 99], allocated_processors=[1, 0, 1, 99],
    )  # fmt: skip
    found = compared(log)
    assert found.waits is not None
    assert (found.jobs, found.waits.jobs) == (4, 1)


# --- the command and the page --------------------------------------------------------------------


def test_the_command_prints_tables_and_the_verdict(played: Path, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "page.html"
    code, out, _ = call_here(["calibrate", played, "--output", page])
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "played.swf under easy on 48 hosts"
    assert [line for line in lines if line.startswith("by ")] == ["by class", "by month", "by user"]
    assert any(re.match(r"  all jobs +2,\d{3} .* 1.00  100%$", line) for line in lines)
    assert "Verdict: good. The simulation is close to what happened." in out
    assert max(map(len, lines)) <= 110
    assert page.read_text().startswith("<!doctype html>")


def test_names_of_a_log_cannot_command_the_terminal(tmp_path: Path) -> None:
    record = "{n} {n} 0 60 1 -1 -1 1 60 -1 1 {n} -1 -1 -1 {n} -1 -1\n"
    names = "; Partition: 1 \x1b[31mred\n; Partition: 2 plain\n"
    (tmp_path / "log.swf").write_text(names + record.format(n=1) + record.format(n=2))
    _, out, _ = call_here(["calibrate", tmp_path / "log.swf", "--hosts", "4"])
    assert "red" in out and "plain" in out
    assert "\x1b" not in out


def test_the_command_prints_json_and_takes_the_options_of_run(played: Path) -> None:
    code, out, _ = call_here(
        ["calibrate", played, "--json", "-s", "easy", "-o", "order=shortest", "--hosts", "64"]
    )
    assert code == 0
    known = json.loads(out)
    assert (known["scheduler"], known["hosts"]) == ("easy", 64)
    assert known["waits"]["mean_simulated"] < known["waits"]["mean_recorded"]
    assert set(known["groups"]) == {"partition", "class", "month", "user"}


def test_the_page_needs_nothing_from_elsewhere(found: Calibration, tmp_path: Path) -> None:
    found.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?://|@import|url\(", page)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "Verdict: good", "What may explain differences", "Waits", "By class", "By month", "By user",
    ]  # fmt: skip


def test_every_mark_lies_between_the_ends_of_the_axes(found: Calibration) -> None:
    for name, figure in all_figures(found).items():
        assert figure is not None, name
        assert figure.x.ends is not None and figure.y.ends is not None
        (left, right), (low, high) = figure.x.ends, figure.y.ends
        for layer in figure.layers:
            for mark in layer.marks:
                if isinstance(mark, Bar):
                    assert left <= mark.left < mark.right <= right, name
                    assert low <= mark.base < mark.top <= high, name
                else:
                    assert left <= mark.x <= right, name
                    assert low <= mark.y <= high, name


@pytest.mark.slow
def test_a_browser_draws_the_page(found: Calibration, tmp_path: Path) -> None:
    found.save(tmp_path / "page.html")
    with headless(tmp_path / "profile") as browser:
        browser.get((tmp_path / "page.html").as_uri())
        deadline = time.monotonic() + PATIENCE
        canvases = browser.find_elements("css selector", "figure canvas")
        assert len(canvases) == 3
        for canvas in canvases:
            while np.std(imread(io.BytesIO(canvas.screenshot_as_png))[:, :, :3]) < 0.03:
                assert time.monotonic() < deadline
        assert browser.get_log("browser") == []
