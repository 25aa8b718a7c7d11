"""The report of a campaign, looked at in a real browser."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imread

from batsched_py.analysis import report as report_page
from batsched_py.analysis.report import Report, write_report
from batsched_py.analysis.report.figures import Subject
from batsched_py.campaign import html_report
from batsched_py.campaign.html_report import write_html
from batsched_py.campaign.run import State
from batsched_py.campaign.store import Campaign
from batsched_py.cli.main import batsched_py
from tests import campaigns
from tests.browser import headless
from tests.campaign.conftest import POLICIES
from tests.runs import Measured, Row, run_of

PLAN = """
title = "<b>Half</b> the machine & </script> no harm"
metrics = ["makespan", "mean_waiting_time", "utilization", "mean_lateness"]
repetitions = 3

[logs]
small = { file = "small log.swf" }

[platforms]
full = { hosts = 64 }
half = { hosts = 32 }

[schedulers]
fcfs = {}
shuffled = { name = "policies.py:Shuffled" }

[users]
think-time = {}
"""

#: The height of a line of the box plots, in pixels.
BOX_ROOM = 26


def conducted(folder: Path, plan: str, lines: Sequence[str]) -> Campaign:
    """A campaign of this plan on a log with these lines."""
    (folder / "small log.swf").write_text("".join(lines))
    (folder / "policies.py").write_text(POLICIES)
    (folder / "plan.toml").write_text(plan)
    return campaigns.conducted(folder)


@pytest.fixture(scope="module")
def log(root: Path) -> list[str]:
    """The lines of a log with so few jobs that no run of it is said to have no steady state."""
    return (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)[:210]


@pytest.fixture(scope="module")
def campaign(log: list[str], tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Two machines, two schedulers, one of which is repeated with another seed."""
    return conducted(tmp_path_factory.mktemp("campaign"), PLAN, log)


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> Path:
    """The report, written by the command."""
    file = campaign.folder / "report.html"
    result = CliRunner().invoke(
        batsched_py, ["campaign", "report", str(campaign.folder), "--output", str(file)]
    )
    assert result.exit_code == 0, result.output
    return file


def test_remarks_that_a_plan_asks_for_are_in_the_gantt_chart(log: list[str], tmp_path: Path) -> None:
    plan = PLAN.replace("repetitions = 3", "").replace("fcfs = {}", "easy = { remarks = true }")
    campaign = conducted(tmp_path, plan, log[:120])
    (easy,) = campaign.folder.glob("runs/*full_easy*")
    remarks = (easy / "out_remarks.csv").read_text()
    file = tmp_path / "report.html"
    write_html(file, campaign)
    assert "heads the queue, " in remarks
    assert "heads the queue, " in file.read_text()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that talks to nobody."""
    with headless(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Any, page: Path) -> Any:
    """The browser with the page in it, as it is at first, and its logs empty before."""
    chromium.get("about:blank")
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(page.as_uri())
    painted(chromium)
    return chromium


def painted(browser: Any) -> None:
    """Wait until the browser has shown the page as it is now, pictures included."""
    browser.execute_async_script(
        "const done = arguments[0];"
        "const shown = () => requestAnimationFrame(() => requestAnimationFrame(done));"
        "Promise.all(data.rows.map((row) => row.image?.decode())).then(shown);"
    )


def find(browser: Any, selector: str) -> list[Any]:
    return browser.find_elements("css selector", selector)


def click(browser: Any, selector: str, text: str | None = None) -> None:
    """Click the first element, or the one that begins with a text, and leave it with the pointer."""
    next(each for each in find(browser, selector) if text is None or each.text.startswith(text)).click()
    leave(browser)


def leave(browser: Any) -> None:
    """Move the pointer to where nothing is."""
    from selenium.webdriver import ActionChains

    chain = ActionChains(browser)
    chain.w3c_actions.pointer_action.move_to_location(1, 1)
    chain.perform()
    painted(browser)


def table(browser: Any) -> list[list[str]]:
    """What the cells of the results say, row by row."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#results tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


def hover(browser: Any, selector: str, down: int = 0) -> None:
    """Move the pointer to the middle of the first element, or so many pixels below."""
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element_with_offset(find(browser, selector)[0], 0, down).perform()
    painted(browser)


def choose(browser: Any, selector: str, text: str) -> None:
    """Choose an option of a list by its text."""
    next(option for option in find(browser, f"{selector} option") if option.text == text).click()
    painted(browser)


def drawings(browser: Any, section: str = "figures") -> dict[str, str]:
    """What is on the canvas of each figure of a section that is shown, by its title."""
    return browser.execute_script(
        f"const figures = [...document.querySelectorAll('#{section} figure:not([hidden])')];"
        "return Object.fromEntries(figures.map((figure) =>"
        "[figure.querySelector('figcaption').firstChild.textContent,"
        " figure.querySelector('canvas').toDataURL()]))"
    )


def variety(png: bytes) -> float:
    """How much the pixels of an image differ from each other."""
    return float(np.std(imread(io.BytesIO(png))[:, :, :3]))


# --- at first sight ------------------------------------------------------------------------------


def test_the_browser_complains_about_nothing(browser: Any) -> None:
    assert browser.get_log("browser") == []


def test_nothing_is_fetched_from_anywhere(browser: Any) -> None:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert any(url.endswith("report.html") for url in urls)
    assert [url for url in urls if not url.startswith(("file:", "data:"))] == []


def test_a_title_is_text_whatever_is_in_it(browser: Any) -> None:
    assert browser.title == "<b>Half</b> the machine & </script> no harm"
    assert find(browser, "h1")[0].text == browser.title


def test_a_row_for_each_configuration_in_the_order_of_the_plan(browser: Any) -> None:
    expected = [["full", "fcfs"], ["full", "shuffled"], ["half", "fcfs"], ["half", "shuffled"]]
    assert [row[1:3] for row in table(browser)] == expected


def test_repetitions_have_a_confidence_interval(browser: Any) -> None:
    assert [["[" in cell for cell in row[3:]] for row in table(browser)] == [[False] * 4, [True] * 4] * 2


def test_the_best_of_each_column_is_marked(browser: Any, campaign: Campaign) -> None:
    means = campaign.table().groupby(["platform", "scheduler"])[["mean_waiting_time", "utilization"]].mean()
    for column, name, lowest in ((4, "mean_waiting_time", True), (5, "utilization", False)):
        of_full = means.loc["full", name]
        best = of_full.idxmin() if lowest else of_full.idxmax()
        rows = find(browser, f"#results tbody tr:has(td:nth-child({column + 1}).best)")
        marked = [tuple(row.text.split()[:2]) for row in rows]
        assert ("full", best) in marked, "the best of a machine, whatever another one would do"
        assert all(place in means.index for place in marked)


def test_each_run_has_links_to_its_files(browser: Any, page: Path, campaign: Campaign) -> None:
    links = [link.get_dom_attribute("href") for link in find(browser, "#runs a")]
    files = [(page.parent / unquote(link)).resolve() for link in links]
    expected = {
        (run.folder / f.path).resolve()
        for run in campaign.finished()
        for f in run.manifest.results
        if f.path != "windows.json"
    }
    assert set(files) == expected | {(run.folder / "manifest.json").resolve() for run in campaign.finished()}


def test_the_plan_is_shown(browser: Any) -> None:
    assert find(browser, "#plan")[0].text.strip() == PLAN.strip()


def test_no_figure_is_blank(browser: Any) -> None:
    assert variety(browser.get_screenshot_as_png()) > 0.05
    canvases = find(browser, "figure canvas, #gantt canvas")
    assert len(canvases) > 10
    for canvas in canvases:
        assert variety(canvas.screenshot_as_png) > 0.05


# --- when it is used -----------------------------------------------------------------------------


def test_a_click_on_a_value_leaves_only_what_has_it(browser: Any) -> None:
    click(browser, "#filters button", "half")
    assert [row[1:3] for row in table(browser)] == [["half", "fcfs"], ["half", "shuffled"]]
    click(browser, "#filters button", "shuffled")
    assert [row[1:3] for row in table(browser)] == [["half", "shuffled"]]
    click(browser, "#filters button", "half")
    assert [row[1:3] for row in table(browser)] == [["full", "shuffled"], ["half", "shuffled"]]


def test_a_click_on_a_heading_sorts(browser: Any) -> None:
    def waits() -> list[float]:
        return [float(row[4].split("[")[0].strip(" †").replace(",", "")) for row in table(browser)]

    planned = waits()
    click(browser, "#results th", "mean waiting time")
    assert waits() == sorted(planned) != planned
    click(browser, "#results th", "mean waiting time")
    assert waits() == sorted(planned, reverse=True)
    click(browser, "#results th", "mean waiting time")
    assert waits() == planned


def test_a_run_is_switched_off_and_on_in_every_figure(browser: Any) -> None:
    before = drawings(browser)
    click(browser, "#results tbody input")
    without = drawings(browser)
    same = {"Longest paths", "Arities"}  # the graphs of the log's users are the same in all runs
    assert {title for title in before if before[title] == without[title]} <= same
    click(browser, "#legend .chip", "full · fcfs")
    assert drawings(browser) == before


def test_a_drag_zooms_all_figures_over_time_and_a_double_click_shows_all_again(browser: Any) -> None:
    from selenium.webdriver import ActionChains

    before = drawings(browser)
    canvas = find(browser, "figure canvas")[0]
    ActionChains(browser).move_to_element_with_offset(canvas, -60, 0).click_and_hold().move_by_offset(
        90, 0
    ).release().perform()
    leave(browser)
    zoomed = drawings(browser)
    assert {"Submissions", "Queue", "Utilization"} <= {t for t in before if before[t] != zoomed[t]}
    assert before["Waiting times"] == zoomed["Waiting times"]
    ActionChains(browser).double_click(canvas).perform()
    leave(browser)
    assert drawings(browser) == before


def test_the_pointer_is_told_the_value_of_the_nearest_run(browser: Any) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(browser).move_to_element(find(browser, "figure canvas")[1]).perform()
    painted(browser)
    tip = find(browser, "figure:nth-child(2) .tip")[0].text
    assert re.fullmatch(r"(as recorded|(full|half) · (fcfs|shuffled))\n[\d,]+ jobs at [\d.]+ \w+", tip)


def test_the_jobs_of_each_class_have_a_figure(browser: Any) -> None:
    classes = ("long, narrow", "long, wide", "short, narrow", "short, wide")
    titles = [f"{measure}: {each}" for measure in ("Waiting times", "Bounded slowdowns") for each in classes]
    before = drawings(browser, "classes")
    assert sorted(before) == sorted(titles)
    click(browser, "#legend .chip", "half · shuffled")
    assert all(before[title] != image for title, image in drawings(browser, "classes").items())


def test_the_pointer_is_told_a_share_of_the_jobs_of_a_class(browser: Any) -> None:
    hover(browser, "#classes canvas")
    tip = find(browser, "#classes .tip")[0].text
    assert re.fullmatch(r"(as recorded|(full|half) · (fcfs|shuffled))\n[\d.]+ % at [\d.]+ \w+", tip)


def test_a_box_tells_how_repetitions_differ(browser: Any, campaign: Campaign) -> None:
    choose(browser, "#box-metric", "mean waiting time")
    told = {}
    for middle in browser.execute_script(
        "const { height } = boxes.canvas.getBoundingClientRect();"
        "return boxes.drawn.map((_, place) => boxes.toY(place) - height / 2)"
    ):
        hover(browser, "#box-chart canvas", down=round(middle))
        name, text = find(browser, "#box-chart .tip")[0].text.split("\n")
        told[name] = text
    assert [name for name in told if told[name].endswith(", not repeated")] == ["half · fcfs", "full · fcfs"]
    waits = campaign.table().set_index(["platform", "scheduler"])["mean_waiting_time"]
    for platform in ("full", "half"):
        marks = waits[platform, "shuffled"].quantile([0.5, 0.25, 0.75]) / 3600
        text = told[f"{platform} · shuffled"]
        assert [float(word) for word in re.findall(r"[\d.]*\d", text)] == pytest.approx(
            [*marks, 3], abs=0.006
        )


def test_a_box_of_each_run_that_is_drawn(browser: Any) -> None:
    def picture() -> tuple[int, str]:
        (canvas,) = find(browser, "#box-chart canvas")
        return canvas.size["height"], browser.execute_script("return arguments[0].toDataURL()", canvas)

    before = picture()
    click(browser, "#legend .chip", "half · shuffled")
    assert picture()[0] == before[0] - BOX_ROOM
    click(browser, "#legend .chip", "half · shuffled")
    assert picture() == before
    choose(browser, "#box-metric", "utilization")
    assert picture() != before


def test_the_gantt_chart_is_that_of_the_chosen_run(browser: Any) -> None:
    canvas = find(browser, "#gantt canvas")[0]
    first = browser.execute_script("return arguments[0].toDataURL()", canvas)
    find(browser, "#gantt-run option")[2].click()
    painted(browser)
    assert browser.execute_script("return arguments[0].toDataURL()", canvas) != first


def test_the_gantt_chart_tells_the_job_under_the_pointer(browser: Any) -> None:
    from selenium.webdriver import ActionChains

    largest, x, y = browser.execute_script(
        "const { jobs, job, from, to, low, high } = gantt.row.gantt;"
        "const area = (place) => (to[place] - from[place]) * (high[place] - low[place]);"
        "const best = job.map((_, place) => place).reduce((a, b) => (area(a) < area(b) ? b : a));"
        "const { width, height } = gantt.canvas.getBoundingClientRect();"
        "return [jobs[job[best]], gantt.toX((from[best] + to[best]) / 2) - width / 2,"
        " gantt.toY((low[best] + high[best]) / 2) - height / 2]"
    )
    canvas = find(browser, "#gantt canvas")[0]
    ActionChains(browser).move_to_element_with_offset(canvas, round(x), round(y)).perform()
    painted(browser)
    tip = find(browser, "#gantt .tip")[0].text
    assert re.fullmatch(rf"job {largest}\n[\d.,]+ \w+ to [\d.,]+ \w+, hosts [\d -]+", tip)


def test_a_gantt_chart_of_many_jobs_tells_how_busy_a_host_is(
    chromium: Any, campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selenium.webdriver import ActionChains

    monkeypatch.setattr(report_page, "MOST_RECTANGLES", 0)
    write_html(tmp_path / "report.html", campaign)
    chromium.get((tmp_path / "report.html").as_uri())
    painted(chromium)
    canvas = find(chromium, "#gantt canvas")[0]
    ActionChains(chromium).move_to_element(canvas).perform()
    painted(chromium)
    assert re.fullmatch(r"host \d+\n\d+ % busy at [\d.]+ \w+", find(chromium, "#gantt .tip")[0].text)
    assert variety(canvas.screenshot_as_png) > 0.05
    assert chromium.get_log("browser") == []


def test_it_is_dark_where_the_user_prefers_that(browser: Any) -> None:
    light = drawings(browser)
    emulate = "Emulation.setEmulatedMedia"
    browser.execute_cdp_cmd(emulate, {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    try:
        painted(browser)
        assert imread(io.BytesIO(browser.get_screenshot_as_png()))[0, 0, :3].max() < 0.2
        assert all(light[title] != image for title, image in drawings(browser).items())
    finally:
        browser.execute_cdp_cmd(emulate, {"features": []})


# --- with many logs ------------------------------------------------------------------------------

SCHEDULERS = ("fcfs", "easy", "conservative", "sjf", "ljf", "filler")


def many(folder: Path, count: int) -> Path:
    """The report of a campaign on so many small logs, each simulated with six schedulers."""
    for number in range(count):
        random, time, lines = Random(number), 0, ["; MaxProcs: 16\n"]
        for job in range(1, 81):
            time += round(random.expovariate(1 / (300 + 20 * number)))
            length, size = random.randint(30, 4000), random.choice([1, 1, 2, 4, 8, 12])
            fields = [job, time, 0, length, size, -1, -1, size, 2 * length, -1, 1, 1 + job % 5]
            lines.append(" ".join(map(str, fields)) + " 1 -1 1 -1 -1 -1\n")
        (folder / f"log{number}.swf").write_text("".join(lines))
    logs = [f'log-{number} = {{ file = "log{number}.swf" }}' for number in range(count)]
    plan = ["[logs]", *logs, "[platforms]", "whole = { hosts = 16 }", "[schedulers]"]
    (folder / "plan.toml").write_text("\n".join([*plan, *(f"{name} = {{}}" for name in SCHEDULERS)]))
    campaign = campaigns.conducted(folder)
    assert {result.state for result in campaign.results()} == {State.DONE}
    write_html(folder / "report.html", campaign)
    return folder / "report.html"


@pytest.fixture(scope="module")
def three_logs(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The browser with the page of three logs."""
    chromium.get(many(tmp_path_factory.mktemp("many"), 3).as_uri())
    painted(chromium)
    return chromium


def test_of_several_logs_one_is_picked_and_may_be_changed(three_logs: Any) -> None:
    assert [row[1:3] for row in table(three_logs)] == [["log-0", name] for name in SCHEDULERS]
    assert [chip.text for chip in find(three_logs, "#legend .chip")] == ["as recorded", *SCHEDULERS]
    before = drawings(three_logs)
    find(three_logs, "#filters select option")[3].click()
    painted(three_logs)
    assert [row[1:3] for row in table(three_logs)] == [["log-2", name] for name in SCHEDULERS]
    assert before["Waiting times"] != drawings(three_logs)["Waiting times"]


def test_a_scheduler_has_the_same_colour_in_every_log(three_logs: Any) -> None:
    pairs = three_logs.execute_script("return data.rows.map((row) => [row.axes.scheduler, colourOf(row)])")
    assert len(set(map(tuple, pairs))) == len({colour for _, colour in pairs}) == len(SCHEDULERS)


def test_with_all_logs_what_was_recorded_is_not_in_the_way(three_logs: Any) -> None:
    find(three_logs, "#filters select option")[0].click()
    painted(three_logs)
    assert len(table(three_logs)) == 3 * len(SCHEDULERS)
    recorded = [chip for chip in find(three_logs, "#legend .chip") if "as recorded" in chip.text]
    assert [chip.get_attribute("aria-pressed") for chip in recorded] == ["false"] * 3


def test_small_multiples_have_a_panel_for_each_log(three_logs: Any) -> None:
    panels = find(three_logs, "#panels figure")
    assert [panel.text for panel in panels] == ["log-0", "log-1", "log-2"]
    three_logs.execute_script("arguments[0].scrollIntoView()", panels[0])
    painted(three_logs)
    assert all(variety(panel.screenshot_as_png) > 0.05 for panel in panels)


def test_a_metric_is_drawn_against_an_axis_of_the_plan(three_logs: Any) -> None:
    canvas = find(three_logs, "#metric-chart canvas")[0]
    first = three_logs.execute_script("return arguments[0].toDataURL()", canvas)
    find(three_logs, "#metric option")[1].click()
    painted(three_logs)
    assert three_logs.execute_script("return arguments[0].toDataURL()", canvas) != first
    assert three_logs.get_log("browser") == []


def test_without_repetitions_there_are_no_box_plots(three_logs: Any) -> None:
    assert not find(three_logs, "#repetitions")[0].is_displayed()


@pytest.mark.slow
def test_two_hundred_runs_are_readable(chromium: Any, tmp_path: Path) -> None:
    chromium.get(many(tmp_path, 36).as_uri())
    painted(chromium)
    assert chromium.execute_script("return data.rows.length") == 216
    assert len(table(chromium)) == len(SCHEDULERS)
    assert len(find(chromium, "#legend .chip")) == 1 + len(SCHEDULERS)
    assert len(find(chromium, "#panels figure")) == 36
    assert chromium.get_log("browser") == []


# --- with many loads -----------------------------------------------------------------------------

LOADS = ("0.8", "1", "1.25")


@pytest.fixture(scope="module")
def many_loads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of six schedulers on two machines under three loads, which has 36 rows."""
    return with_loads(tmp_path_factory.mktemp("loads"))


def with_loads(folder: Path, baseline: str = "") -> Path:
    """That page, perhaps with a baseline."""
    subject = Subject(run_of(folder, [Row(1, 0, 0, 3600, "0-1"), Row(2, 60, 3600, 7200, "0")]))
    runs = [
        Measured(
            {"log": "log-0", "load": load, "platform": platform, "scheduler": scheduler},
            {"mean_bounded_slowdown": 2.0 ** (place + number), "utilization": 0.5 + place / 100},
        )
        for number, load in enumerate(LOADS)
        for platform in ("whole", "half")
        for place, scheduler in enumerate(SCHEDULERS)
    ]
    recorded = {"log-0": lambda: subject}
    metrics = ["mean_bounded_slowdown", "utilization"]
    page = folder / "report.html"
    made = Report("many loads", "", metrics, runs, lambda run: subject, recorded, baseline=baseline)
    write_report(page, made)
    return page


@pytest.fixture
def loads(chromium: Any, many_loads: Path) -> Any:
    """The browser with that page as it is at first."""
    chromium.get(many_loads.as_uri())
    painted(chromium)
    return chromium


def entries(browser: Any) -> dict[str, bool]:
    """What the legend has, and whether it is switched on."""
    chips = find(browser, "#legend .chip")
    return {chip.text: chip.get_attribute("aria-pressed") == "true" for chip in chips}


def test_the_legend_of_many_rows_has_the_values_of_each_axis(loads: Any) -> None:
    names = ["as recorded", *LOADS, "whole", "half", *SCHEDULERS]
    assert list(entries(loads)) == names
    assert [axis.text.split("\n")[0] for axis in find(loads, "#legend .axis")] == [
        "load",
        "platform",
        "scheduler",
    ]


def test_the_page_says_which_rows_are_drawn_at_first_and_lets_others_be_chosen(loads: Any) -> None:
    """Every scheduler at the recorded load on the first machine, not the first rows of the plan."""

    def drawn() -> set[tuple[str, ...]]:
        script = "return data.rows.filter((row) => row.drawn).map((row) => Object.values(row.axes))"
        return {tuple(values) for values in loads.execute_script(script)}

    def said() -> str:
        return find(loads, "#drawn")[0].text

    first = {("log-0", "1", "whole", name) for name in SCHEDULERS}
    assert drawn() == first
    assert said().startswith("6 of 36 rows are drawn: load 1; platform whole; every scheduler. ")
    click(loads, "#legend .chip", "1.25")
    click(loads, "#legend .chip", "fcfs")
    assert drawn() == {("log-0", load, "whole", name) for load in ("1", "1.25") for name in SCHEDULERS[1:]}
    assert said().startswith("10 of 36 rows are drawn: load 1, 1.25; platform whole; 5 of 6 values of sched")
    assert [name.text for name in find(loads, "#drawn .name")] == ["1 · whole", "1.25 · whole"]
    dashes = "return data.rows.filter((row) => row.drawn).map((row) => [row.axes.load, dashOf(row).join()])"
    assert len({tuple(each) for each in loads.execute_script(dashes)}) == 2
    click(loads, "#legend button", "as at first")
    assert drawn() == first
    click(loads, "#legend button:not(.chip)", "all")
    assert len(drawn()) == 36
    assert said().startswith("All 36 rows are drawn.")


def test_a_scheduler_has_the_same_colour_in_every_figure(loads: Any) -> None:
    choose(loads, "#multiple-axis", "load")
    colours = loads.execute_script(
        "const pairs = data.rows.flatMap((row) => [[], ['load'], ['platform']]"
        "  .map((common) => [row.axes.scheduler, colourOf(row, ...common)]));"
        "for (const { label, row } of metric.drawn)"
        "  pairs.push([label.split(' · ').pop(), colourOf(row, 'load')]);"
        "for (const panel of multiples.panels)"
        "  for (const row of panel.rows()) pairs.push([row.axes.scheduler, panel.colour(row)]);"
        "return pairs;"
    )
    assert len({tuple(pair) for pair in colours}) == len({colour for _, colour in colours}) == len(SCHEDULERS)
    keys = [name.text for name in find(loads, "#panel-names .name")]
    assert keys == [name.text for name in find(loads, "#metric-names .name")] == list(SCHEDULERS)


def test_many_curves_are_small_multiples_of_what_is_comparable_with_the_baseline_in_grey(
    chromium: Any, tmp_path: Path
) -> None:
    chromium.get(with_loads(tmp_path, "easy").as_uri())
    painted(chromium)
    panels = [panel.text for panel in find(chromium, "#panels figcaption")]
    assert panels == [f"{load} · {platform}" for load in LOADS for platform in ("whole", "half")]
    others = [name for name in SCHEDULERS if name != "easy"]
    assert [name.text for name in find(chromium, "#panel-names .name")] == ["easy (baseline)", *others]
    drawn, grey = chromium.execute_script(
        "return [multiples.panels.map((panel) =>"
        "  panel.rows().map((row) => [row.axes.scheduler, panel.colour(row)])), css('--grey')]"
    )
    for rows in drawn:
        assert rows[0] == ["easy", grey], "it lies beneath the others"
        assert sorted(name for name, colour in rows if colour != grey) == sorted(others)
    assert chromium.get_log("browser") == []


def test_rows_that_may_be_compared_lie_together(loads: Any) -> None:
    """Whatever the order of the plan; but not if they are sorted by a figure."""
    begins = "return [...document.querySelectorAll('#results tbody tr.first')].map((row) => row.rowIndex)"
    assert loads.execute_script(begins) == [1 + place for place in range(6, 36, 6)]
    loads.execute_script("data.rows.reverse(); drawTable()")
    assert loads.execute_script(begins) == [1 + place for place in range(6, 36, 6)]
    click(loads, "#results th", "utilization")
    assert loads.execute_script(begins) == []


def test_the_curve_under_the_pointer_stands_out_in_every_figure(browser: Any) -> None:
    before = drawings(browser)
    hover(browser, "figure canvas")
    assert browser.execute_script("return pointed === charts[0].mark.row")
    assert all(before[title] != image for title, image in drawings(browser).items())
    leave(browser)
    assert drawings(browser) == before


def test_nothing_is_wider_than_a_telephone(loads: Any) -> None:
    narrow = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    loads.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        loads.refresh()
        painted(loads)
        assert loads.execute_script("return document.documentElement.scrollWidth") == 360
        over = (
            "return [...document.querySelectorAll('canvas, select, h1, p, pre')]"
            ".filter((each) => each.getBoundingClientRect().right > 360).map((each) => each.outerHTML)"
        )
        assert loads.execute_script(over) == []
    finally:
        loads.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_slowdowns_against_the_load_are_on_a_logarithmic_axis(loads: Any) -> None:
    scales = (
        "return [metric.y.axis.scale, metric.x.ticks(7).map(({ text }) => text), metric.y.ticks(5).length]"
    )
    scale, ticks, marks = loads.execute_script(scales)
    assert (scale, ticks) == ("log", list(LOADS))
    assert marks > 1
    choose(loads, "#metric", "utilization")
    assert loads.execute_script(scales)[0] == "linear"
    assert loads.get_log("browser") == []


def test_a_logarithmic_axis_always_has_ticks_and_nothing_is_minus_zero(loads: Any) -> None:
    counts = loads.execute_script(
        "return [[1.2, 1.9], [3, 4.9], [1, 1000], [0.2, 30]]"
        ".map(([low, high]) => new Scale({ label: '', scale: 'log' }, low, high).ticks(5).length)"
    )
    assert min(counts) > 1
    texts = loads.execute_script("return [withDecimals(-1e-9, 4), number(-0), withDecimals(-0.25, 1)]")
    assert texts == ["0.0000", "0", "\N{MINUS SIGN}0.3"]


# --- without a browser ---------------------------------------------------------------------------


def content(page: Path) -> dict[str, Any]:
    """What the page knows."""
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page.read_text())[1])


def test_the_rule_for_walltimes_is_told(page: Path) -> None:
    assert "Walltimes: requested, at least run time." in page.read_text()


def test_the_same_results_make_the_same_page(campaign: Campaign, page: Path) -> None:
    again = page.with_name("again.html")
    write_html(again, campaign)
    assert again.read_bytes() == page.read_bytes()


def test_several_processes_make_the_same_page(
    campaign: Campaign, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_report, "WORTH_PROCESSES", 0)
    again = page.with_name("parallel.html")
    write_html(again, campaign)
    assert again.read_bytes() == page.read_bytes()


def test_progress_is_told_row_by_row(campaign: Campaign, tmp_path: Path) -> None:
    """From before the first one on; the log as it was recorded comes after the four rows."""
    steps: list[tuple[int, int]] = []
    write_html(tmp_path / "report.html", campaign, lambda done, total: steps.append((done, total)))
    assert steps == [(done, 5) for done in range(6)]


def test_without_the_log_the_page_says_what_it_lacks(log: list[str], tmp_path: Path) -> None:
    campaign = conducted(tmp_path, PLAN.replace("half = { hosts = 32 }", ""), log)
    write_html(tmp_path / "with.html", campaign)
    (tmp_path / "small log.swf").unlink()
    write_html(tmp_path / "without.html", campaign)
    lacking = "Not drawn, for want of the log small"
    assert [lacking in (tmp_path / name).read_text() for name in ("with.html", "without.html")] == [
        False,
        True,
    ]
    figures, fewer = (
        set(content(tmp_path / name)["rows"][0]["curves"]) for name in ("with.html", "without.html")
    )
    assert figures - fewer == {"Submissions by week and hour", "Longest paths", "Arities"}


def test_a_run_without_an_executed_job_has_a_row_and_no_curves(log: list[str], tmp_path: Path) -> None:
    wide = [line for line in log if line.startswith(";") or int(line.split()[4]) > 1]
    campaign = conducted(tmp_path, PLAN.replace("hosts = 32", "hosts = 1, reject_larger = true"), wide)
    write_html(tmp_path / "report.html", campaign)
    assert [bool(row["curves"]) for row in content(tmp_path / "report.html")["rows"]] == [
        True,
        True,
        False,
        False,
    ]


def test_a_failed_run_is_listed_with_its_reason(log: list[str], tmp_path: Path) -> None:
    broken = PLAN.replace("policies.py:Shuffled", "policies.py:Broken").replace("repetitions = 3", "")
    write_html(tmp_path / "report.html", conducted(tmp_path, broken, log))
    runs = content(tmp_path / "report.html")["runs"]
    assert [bool(run["links"]) for run in runs] == [True, True, False, False]
    assert "I am broken" in runs[2]["remark"]
    assert "2 of 4 runs are finished" in (tmp_path / "report.html").read_text()
