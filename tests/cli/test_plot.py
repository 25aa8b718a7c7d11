"""``batsched-py plot`` as its user sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from batsched_py.analysis.plots.figures import draw
from batsched_py.analysis.plots.runs import recorded_run
from batsched_py.cli.main import batsched_py
from batsched_py.cli.plot import summaries
from batsched_py.workload.swf.reader import read_swf
from tests.runs import Row, write_jobs
from tests.simulator.network.test_execution import STORAGE

image = pytest.importorskip("matplotlib.image", reason="figures need matplotlib")

ROOT = Path(__file__).parents[2]
LOG = ROOT / "workloads" / "sample.swf"
POWER = ROOT / "platforms" / "power64.xml"

#: What each kind is given to draw, and with which options.
KINDS = {
    "decisions": "EASY FCFS",
    "boxes": "EASY FCFS --recorded LOG",
    "cycles": "LOG MADE",
    "work": "LOG MADE --performance 1.667 --performance 2.5",
    "ecdf": "EASY FCFS --of slowdown --by class --recorded LOG",
    "gantt": "EASY --colour user --recorded LOG",
    "links": "SHARED --most 3",
    "power": "EASY",
    "storages": "SHARED",
    "queue": "EASY FCFS --recorded LOG",
    "submissions": "EASY FCFS --recorded LOG",
    "cumulative": "EASY FCFS --recorded LOG",
    "lateness": "EASY FCFS --recorded LOG",
    "additional-lateness": "EASY FCFS --recorded LOG",
    "graphs": "LOG --delimit arrival:60 --delimit max:20",
    "differences": "EASY FCFS",
    "utilization": "EASY FCFS --recorded LOG",
    "weekly": "EASY FCFS --recorded LOG",
    "throughput": "EASY FCFS --skip 7 --window 14 --window 28",
    "arrivals": "EASY FCFS --recorded LOG",
    "scalability": "EASY FCFS --recorded LOG",
    "load": "TABLE --metric mean_waiting_time",
    "repetitions": "TABLE",
    "equilibrium": "BALANCE --platform p2",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of two simulations of the sample, the second with users who react."""
    folder = tmp_path_factory.mktemp("results")
    invoke("run", "-w", LOG, "-p", POWER, "--energy", "-s", "easy", "--decisions", "-e", folder / "easy")
    invoke("run", "-w", LOG, "-s", "fcfs", "--users", "think-time", "--decisions", "-e", folder / "fcfs")
    share_links(folder)
    made = ("-p", "limits=core:1-4,gpu:0-2", "-p", "performance=gpu:50", "--output", folder / "made.csv")
    invoke("generate", "slots", "--like", LOG, "-n", 500, *made)
    lines = ["run,log,load,scheduler,seed,mean_waiting_time,mean_bounded_slowdown"]
    for place, (load, scheduler, seed) in enumerate(product((0.8, 1.0), ("easy", "fcfs"), (1, 2, 3))):
        lines.append(f"r{place},sample,{load},{scheduler},{seed},{3600 * place},{place + seed**2}")
    (folder / "metrics.csv").write_text("\n".join(lines))
    lines = ["run,log,load,platform,users,throughput,mean_turnaround_time"]
    for place, (load, platform, users) in enumerate(product((0.8, 1), ("p1", "p2"), ("rigid", "reacting"))):
        lines.append(f"r{place},sample,{load},{platform},{users},{50 + place},{3600 * (9 - place)}")
    (folder / "balance.csv").write_text("\n".join(lines))
    return folder


def share_links(folder: Path) -> None:
    """Two jobs that write to one storage, recorded."""
    (folder / "storage.xml").write_text(STORAGE)
    profile = {
        "type": "parallel_homogeneous_pfs",
        "bytes_to_read": 1e8,
        "bytes_to_write": 5e9,
        "storage": "pfs",
    }
    jobs = [{"id": str(number), "subtime": 7 * number, "res": 1, "profile": "p"} for number in range(2)]
    (folder / "jobs.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": {"p": profile}}))
    machine = ("-w", folder / "jobs.json", "-p", folder / "storage.xml")
    invoke("run", *machine, "--links", "-s", "easy", "-e", folder / "shared")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, [str(argument) for argument in arguments])


def plot(kind: str, results: Path, output: Path) -> bytes:
    """What the figure of the simulations is, drawn as the command does it."""
    files = {
        "EASY": results / "easy_jobs.csv",
        "FCFS": results / "fcfs_jobs.csv",
        "LOG": LOG,
        "MADE": results / "made.csv",
        "SHARED": results / "shared_jobs.csv",
        "TABLE": results / "metrics.csv",
        "BALANCE": results / "balance.csv",
    }
    result = invoke(
        "plot", kind, *(files.get(word, word) for word in KINDS[kind].split()), "--output", output
    )
    assert result.output == "", result.output
    assert result.exit_code == 0
    return output.read_bytes()


def error_of(*arguments: object) -> str:
    """The one line that the command prints when it fails."""
    result = invoke("plot", *arguments)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_processors_of_each_log_may_have_a_performance_of_their_own(tmp_path: Path) -> None:
    run = recorded_run(read_swf(LOG))
    panels = draw("work", [run, replace(run, label="faster")], performance=(1.0, 10.0)).axes
    most = []
    for panel in panels:
        (shares,) = (each.get_data() for each in panel.patches)
        most.append(shares.edges[1:][shares.values > 0].max())
    assert most[1] == pytest.approx(10 * most[0], rel=0.5)
    assert "3 values for 1 logs and runs" in error_of(
        *("work", LOG, *3 * ("--performance", "2"), "--output", tmp_path / "work.png")
    )
    assert "performance" in error_of("work", LOG, "--performance", "0", "--output", tmp_path / "work.png")


def test_every_kind_is_tested() -> None:
    assert sorted(KINDS) == sorted(summaries())


@pytest.fixture(scope="module")
def drawn(results: Path) -> Callable[[str], Path]:
    """Draws a kind of figure once, for whoever looks at it."""

    def draw(kind: str) -> Path:
        file = results / "figures" / f"{kind}.png"
        if not file.exists():
            plot(kind, results, file)
        return file

    return draw


#: What takes long to draw, and is made of numbers that other tests look at.
SLOW = ("cycles", "decisions", "work")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in SLOW else kind for kind in KINDS]
)
def test_a_figure_is_not_blank(kind: str, drawn: Callable[[str], Path]) -> None:
    pixels = image.imread(drawn(kind))[::2, ::2, :3]
    assert pixels.std() > 0.03
    assert np.ptp(pixels, axis=2).max() > 0.3, "a figure has colours"


def test_every_kind_says_what_it_shows() -> None:
    assert [name for name, line in summaries().items() if not line.endswith((".", "?"))] == []


@pytest.mark.parametrize("kind", ["weekly", "arrivals", "queue", "graphs"])
def test_a_log_is_drawn_like_a_run(kind: str, tmp_path: Path) -> None:
    result = invoke("plot", kind, LOG, f"again={LOG}", "--output", tmp_path / "figure.png")
    assert (result.output, result.exit_code) == ("", 0)
    assert image.imread(tmp_path / "figure.png")[:, :, :3].std() > 0.03


def test_throughput_chooses_windows_that_fit(results: Path, tmp_path: Path) -> None:
    result = invoke("plot", "throughput", results / "easy_jobs.csv", "--output", tmp_path / "figure.png")
    assert (result.output, result.exit_code) == ("", 0)


@pytest.mark.parametrize("kind", ["arrivals", "gantt"])
def test_a_figure_in_grey_has_no_colour(kind: str, results: Path, tmp_path: Path) -> None:
    files = {"EASY": results / "easy_jobs.csv", "FCFS": results / "fcfs_jobs.csv", "LOG": LOG}
    words = (files.get(word, word) for word in KINDS[kind].split())
    look = "--ink grey --width column --font serif".split()
    assert invoke("plot", kind, *words, *look, "--output", tmp_path / "grey.png").exit_code == 0
    pixels = image.imread(tmp_path / "grey.png")[:, :, :3]
    assert np.ptp(pixels, axis=2).max() == 0
    assert pixels.std() > 0.03
    assert pixels.shape[1] == 3.5 * 220


def test_an_option_that_makes_no_sense(results: Path, tmp_path: Path) -> None:
    error = error_of(
        "throughput", results / "easy_jobs.csv", "--window", "-3", "--output", tmp_path / "a.png"
    )
    assert "figure 'throughput': Expected `float` > 0.0" in error


@pytest.mark.parametrize("kind", ["links", "storages"])
def test_what_links_carry_is_known_where_it_was_recorded_only(
    kind: str, results: Path, tmp_path: Path
) -> None:
    error = error_of(kind, results / "fcfs_jobs.csv", "--output", tmp_path / "figure.png")
    assert "fcfs: nothing tells what its links carried; simulate it with --links" in error


def test_power_is_known_with_energy_only(results: Path, tmp_path: Path) -> None:
    (tmp_path / "run_jobs.csv").write_bytes((results / "easy_jobs.csv").read_bytes())
    error = error_of("power", tmp_path / "run_jobs.csv", "--output", tmp_path / "figure.png")
    assert "run: nothing tells what its hosts drew; simulate it with --energy" in error


def test_the_same_data_gives_the_same_image(
    results: Path, drawn: Callable[[str], Path], tmp_path: Path
) -> None:
    again = plot("gantt", results, tmp_path / "again.png")
    assert again == drawn("gantt").read_bytes()
    assert again.startswith(b"\x89PNG")


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_the_same_data_gives_the_same_drawing(ending: str, results: Path, tmp_path: Path) -> None:
    first, second = (plot("lateness", results, tmp_path / f"{number}.{ending}") for number in (1, 2))
    assert first == second
    assert first.startswith({"svg": b"<?xml", "pdf": b"%PDF"}[ending])


def test_another_process_writes_the_same_bytes(results: Path, tmp_path: Path) -> None:
    here = plot("cumulative", results, tmp_path / "here.svg")
    arguments = [results / "easy_jobs.csv", results / "fcfs_jobs.csv", "--recorded", LOG]
    process = [sys.executable, "-m", "batsched_py", "plot", "cumulative", *arguments, "--output", "there.svg"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    subprocess.run(process, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "there.svg").read_bytes() == here


def test_a_personal_matplotlib_style_does_not_matter(
    results: Path, drawn: Callable[[str], Path], tmp_path: Path
) -> None:
    import matplotlib

    usual = drawn("arrivals").read_bytes()
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        assert plot("arrivals", results, tmp_path / "personal.png") == usual


def test_few_jobs_are_drawn_one_by_one(tmp_path: Path) -> None:
    rows = [Row(1, 0, 0, 50, "0-3"), Row(2, 0, 50, 100, "0-1"), Row(3, 5)]
    run = write_jobs(tmp_path / "few_jobs.csv", rows, nb_hosts=4)
    invoke("plot", "gantt", run, "--output", tmp_path / "few.svg")
    drawing = (tmp_path / "few.svg").read_text()
    assert drawing.count('id="PolyCollection') == 1
    assert "<image" not in drawing


def test_many_jobs_become_an_image(tmp_path: Path) -> None:
    rows = [Row(n, n, n, n + 1, str(n % 8)) for n in range(25_000)]
    run = write_jobs(tmp_path / "many_jobs.csv", rows, nb_hosts=8)
    invoke("plot", "gantt", run, "--output", tmp_path / "many.svg")
    drawing = (tmp_path / "many.svg").read_text()
    assert "<image" in drawing
    assert len(drawing) < 1_000_000


def test_runs_are_named_by_label_prefix_or_folder(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "monday"
    folder.mkdir()
    (folder / "jobs.csv").write_bytes((results / "fcfs_jobs.csv").read_bytes())
    runs = [results / "easy_jobs.csv", folder / "jobs.csv", f"half={results / 'fcfs_jobs.csv'}"]
    for label in ("easy", "monday", "half"):
        error = error_of("throughput", *runs, f"{label}={runs[0]}", "--output", tmp_path / "figure.png")
        assert f"the label '{label}' is taken" in error


def test_a_format_that_nobody_knows(results: Path, tmp_path: Path) -> None:
    error = error_of("gantt", results / "easy_jobs.csv", "--output", tmp_path / "figure.gif")
    assert error.endswith("figure.gif: a figure is written as .png, .svg or .pdf\n")


def test_a_place_where_nothing_can_be_written(results: Path) -> None:
    run = results / "easy_jobs.csv"
    assert f"{run / 'figure.png'}: cannot be written" in error_of(
        "gantt", run, "--output", run / "figure.png"
    )


def test_a_missing_run_is_named(tmp_path: Path) -> None:
    assert "absent_jobs.csv: cannot be read" in error_of(
        "gantt", "absent_jobs.csv", "--output", tmp_path / "a.png"
    )


@pytest.mark.parametrize("kind", ["lateness", "additional-lateness", "scalability", "arrivals"])
def test_users_are_not_known_without_a_log(kind: str, results: Path, tmp_path: Path) -> None:
    error = error_of(kind, results / "easy_jobs.csv", "--output", tmp_path / "figure.png")
    assert "easy: the schedule does not tell its users; give the log with --recorded LOG.swf" in error


def test_a_single_run_has_no_differences(results: Path, tmp_path: Path) -> None:
    error = error_of("differences", results / "easy_jobs.csv", "--output", tmp_path / "figure.png")
    assert "nothing to compare the run with" in error


def test_without_matplotlib_the_remedy_is_told(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    monkeypatch.delitem(sys.modules, "batsched_py.analysis.plots.sheet", raising=False)
    error = error_of("gantt", results / "easy_jobs.csv", "--output", tmp_path / "figure.png")
    assert "pip install batsched-py[plots]" in error
