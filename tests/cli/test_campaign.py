"""The command campaign, from the outside."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
from contextlib import chdir
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner
from msgspec import structs

from batsched_py import native
from batsched_py.campaign.run import FileDigest, Manifest
from batsched_py.cli.main import batsched_py
from tests.campaigns import archive, results, write_certificate
from tests.processes import COMMAND, PROGRESS, call, environment

PLAN = """
[logs]
sample = { file = "sample.swf" }

[platforms]
full = { hosts = 64 }

[schedulers]
fcfs = {}
easy = {}
"""


@pytest.fixture(scope="module")
def place(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a campaign has been run: its plan, and ``out/plan``."""
    place = tmp_path_factory.mktemp("campaign")
    lines = (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    (place / "sample.swf").write_text("".join(lines[:150]))
    (place / "plan.toml").write_text(PLAN)
    code, out, err = call(["campaign", "run", "plan.toml", "-j", "1"], cwd=place)
    assert (code, err) == (0, "")
    assert out.startswith("plan: 2 runs in out/plan, 2 to do\n[1/2] sample_full_fcfs: ")
    assert "mean waiting" in out
    return place


def invoke(arguments: list[str], cwd: Path) -> tuple[int, str, str]:
    """What a command does in this process, where no process of its own is needed: as ``call`` tells it."""
    with chdir(cwd):
        done = CliRunner().invoke(batsched_py, arguments)
    return done.exit_code, done.stdout, PROGRESS.sub("", done.stderr)


def test_plan_lists_the_runs(place: Path) -> None:
    assert invoke(["campaign", "plan", "plan.toml"], cwd=place) == (
        0,
        "sample_full_fcfs\nsample_full_easy\n",
        "2 runs, 2 of them done\n",
    )


def test_a_finished_campaign_has_nothing_to_do(place: Path) -> None:
    code, out, err = invoke(["campaign", "run", "plan.toml"], cwd=place)
    assert (code, err) == (0, "")
    assert out.startswith("plan: 2 runs in out/plan, 0 to do\n")


def test_status_takes_the_folder_that_reports_take(place: Path) -> None:
    told = (0, "done    sample_full_fcfs\ndone    sample_full_easy\n2 done\n", "")
    assert invoke(["campaign", "status", "out/plan"], cwd=place) == told
    assert invoke(["campaign", "status", "plan.toml"], cwd=place) == told


def test_status_tells_what_is_done_and_what_is_not(place: Path) -> None:
    (place / "more.toml").write_text(PLAN + 'lazy = { name = "easy", options = { selection = "spread" } }\n')
    status = ["campaign", "status", "more.toml", "-d", "out/plan"]
    assert invoke(status, cwd=place) == (
        0,
        "done    sample_full_fcfs\ndone    sample_full_easy\nmissing sample_full_lazy\n2 done, 1 missing\n",
        "",
    )


def test_plan_tells_how_long_the_others_take(place: Path) -> None:
    text = (place / "plan.toml").read_text()
    (place / "more.toml").write_text(text.replace("[schedulers]", "[schedulers]\nsjf = {}"))
    code, out, err = invoke(["campaign", "plan", "more.toml", "-d", "out/plan"], cwd=place)
    assert (code, out.count("\n")) == (0, 3)
    assert re.fullmatch(r"3 runs, 2 of them done; by these, the others take about .* s with -j 1\n", err)
    _, _, err = invoke(["campaign", "plan", "more.toml", "-d", "nowhere"], cwd=place)
    told = r"3 runs, 0 of them done; as quick as EASY, they take about .* s with -j \d\n"
    assert re.fullmatch(told, err)


def test_a_run_is_not_stale_under_the_other_engine(place: Path) -> None:
    """The plan is asked about in a process that has the Python engine only."""
    _, shown, _ = invoke(["campaign", "show", "out/plan", "sample_full_easy"], cwd=place)
    ran = json.loads(shown)["engine"]
    assert ran == ("python" if native.library is None else "native")
    code, out, err = call(["campaign", "status", "plan.toml"], cwd=place, BATSCHED_PY_PURE="1")
    assert (code, out.splitlines()[-1], err) == (0, "2 done", "")


def test_show_prints_the_manifest_and_its_command_makes_the_run_again(place: Path) -> None:
    code, out, _ = invoke(["campaign", "show", "out/plan", "sample_full_easy"], cwd=place)
    assert code == 0
    command = json.loads(out)["command"]
    assert command == "batsched-py run -w sample.swf --hosts 64 -s easy -e sample_full_easy"
    assert invoke(shlex.split(command)[1:], cwd=place)[0] == 0
    again = (place / "sample_full_easy_jobs.csv").read_bytes()
    assert again == (place / "out" / "plan" / "runs" / "sample_full_easy" / "out_jobs.csv").read_bytes()


def test_report_writes_every_kind_of_table(place: Path) -> None:
    files = ["report.md", "report.tex", "report.csv"]
    assert invoke(
        ["campaign", "report", "plan.toml", *(f"--output={file}" for file in files)], cwd=place
    ) == (
        0,
        "",
        "",
    )
    review, _, tables = (place / "report.md").read_text().partition("\n\n")
    assert review.startswith("* fail ")
    assert "* fail generality: one log is no generalisation -> " in review
    assert tables.startswith("### sample\n\n| scheduler | makespan (d) |")
    assert (place / "report.tex").read_text().startswith("\\begin{table}")
    assert (place / "report.csv").read_bytes() == (place / "out" / "plan" / "metrics.csv").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "stale"],
        ["report", "stale", "--output", "x.html"],
        ["table", "stale"],
        ["figures", "stale"],
        ["export", "stale", "x.zip"],
    ],
)
def test_where_all_runs_are_stale_no_run_is_finished(place: Path, arguments: list[str]) -> None:
    if not (place / "stale").exists():
        copytree(place / "out" / "plan", place / "stale")
        for file in place.glob("stale/runs/*/metrics.json"):
            file.write_text("{}")
    code, out, err = invoke(["campaign", *arguments], cwd=place)
    assert (code, out) == (1, "")
    assert err.startswith("batsched-py: error: stale: no run is finished, so there is nothing to ")
    assert "; `batsched-py campaign status stale` says why, `campaign run` with the plan does " in err
    _, out, _ = invoke(["campaign", "status", "stale"], cwd=place)
    assert out.count("its files were changed after it was done") == 2


def test_a_report_of_another_kind(place: Path) -> None:
    code, _, err = invoke(["campaign", "report", "out/plan", "--output", "report.doc"], cwd=place)
    assert code == 1
    assert err.startswith("batsched-py: error: report.doc: a report is written as ")


def test_export_and_import(place: Path) -> None:
    assert invoke(["campaign", "export", "out/plan", "plan.zip"], cwd=place) == (0, "plan.zip: 2 runs\n", "")
    assert invoke(["campaign", "import", "plan.zip", "again"], cwd=place) == (
        0,
        "again: 2 runs, all as they were exported\n",
        "",
    )
    assert results(place / "again") == results(place / "out" / "plan")
    assert invoke(["campaign", "report", "again"], cwd=place)[0] == 0


def test_a_failure_is_told_the_rest_goes_on_and_the_exit_code_says_so(place: Path) -> None:
    (place / "broken.py").write_text(
        "from batsched_py.schedulers import Cluster, Scheduler\n\n\n"
        "class Broken(Scheduler):\n"
        '    """Fails."""\n\n'
        '    name = "broken"\n\n'
        "    def schedule(self, cluster: Cluster) -> None:\n"
        "        raise RuntimeError('I am broken')\n"
    )
    plan = PLAN.replace("fcfs = {}", 'broken = { name = "broken.py:Broken" }')
    (place / "broken.toml").write_text(plan)
    code, out, err = invoke(["campaign", "run", "broken.toml", "-j", "1"], cwd=place)
    first, last = err.splitlines()
    assert (code, last) == (1, "batsched-py: error: 1 of 2 runs failed")
    assert first.startswith("batsched-py: sample_full_broken failed: scheduler 'broken' failed at time 0: ")
    assert "[2/2] sample_full_easy" in out
    code, out, _ = invoke(["campaign", "status", "broken.toml"], cwd=place)
    assert out.startswith("failed  sample_full_broken: scheduler 'broken' failed at time 0: ")
    assert out.endswith("1 done, 1 failed\n")


def test_a_missing_log_is_not_downloaded_without_being_asked(place: Path) -> None:
    (place / "far.toml").write_text(
        PLAN.replace('"sample.swf"', '"far.swf", url = "https://127.0.0.1:9/far.swf"')
    )
    assert invoke(["campaign", "run", "far.toml"], cwd=place) == (
        1,
        "",
        "batsched-py: error: far.swf is not here; say where it is by --logs DIR, or download it by --yes\n",
    )
    code, _, err = invoke(["campaign", "run", "far.toml", "--yes"], cwd=place)
    assert code == 1
    assert err.startswith("batsched-py: error: https://127.0.0.1:9/far.swf: cannot be downloaded to ")


def test_a_missing_log_is_downloaded_after_asking(place: Path, tmp_path: Path) -> None:
    """On a terminal, from an archive on loopback."""
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "near.swf").write_bytes((place / "sample.swf").read_bytes())
    certificate = write_certificate(tmp_path / "both.pem")
    with archive(tmp_path / "archive", certificate) as url:
        log = f'"near.swf", url = "{url}/near.swf"'
        (tmp_path / "near.toml").write_text(PLAN.replace('"sample.swf"', log))
        ours, theirs = pty.openpty()
        os.write(ours, b"y\n")
        command = [*COMMAND, "campaign", "run", "near.toml", "-j", "1"]
        run = subprocess.run(
            command,
            stdin=theirs,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(SSL_CERT_FILE=str(certificate)),
            check=False,
        )
        os.close(ours)
        os.close(theirs)
    assert (run.returncode, PROGRESS.sub("", run.stderr)) == (
        0,
        f"near.swf is not here. Download it from {url}/near.swf to {tmp_path}? [y/N]: ",
    )
    assert (tmp_path / "near.swf").read_bytes() == (place / "sample.swf").read_bytes()


def test_a_full_disk_is_told_in_lines_and_the_campaign_goes_on_later(place: Path, tmp_path: Path) -> None:
    """No file may become larger than a few kB, as if the disk were full then."""
    run = ["campaign", "run", str(place / "plan.toml"), "-d", str(tmp_path / "results"), "-j", "1"]
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *COMMAND, *run],
        capture_output=True,
        text=True,
        env=environment(PYTHONDONTWRITEBYTECODE="1"),
        check=False,
    )
    *failures, last = limited.stderr.splitlines()
    assert (limited.returncode, last) == (1, "batsched-py: error: 2 of 2 runs failed")
    assert all("File too large" in line for line in failures)
    assert not (tmp_path / "results" / "runs").exists()
    assert invoke(run, cwd=place)[0] == 0
    assert results(tmp_path / "results") == results(place / "out" / "plan")


def test_finished_runs_are_done_again_and_compared(place: Path, tmp_path: Path) -> None:
    copytree(place, tmp_path, dirs_exist_ok=True)
    code, _, err = invoke(["campaign", "run", "plan.toml", "--verify", "2"], cwd=tmp_path)
    assert code == 0, err
    assert sorted(line for line in err.splitlines() if line.startswith("verified")) == [
        "verified sample_full_easy: the same bytes",
        "verified sample_full_fcfs: the same bytes",
    ]
    folder = tmp_path / "out" / "plan" / "runs" / "sample_full_easy"
    manifest = Manifest.read(folder)
    (folder / "metrics.json").write_text((folder / "metrics.json").read_text() + "\n")
    results = [FileDigest.of(folder / each.path, each.path) for each in manifest.results]
    structs.replace(manifest, results=results).write(folder)
    code, _, err = invoke(["campaign", "run", "plan.toml", "--verify", "2"], cwd=tmp_path)
    assert code == 1
    assert "verified sample_full_easy: other bytes in metrics.json\n" in err
    assert err.endswith("batsched-py: error: 1 of 2 runs give other bytes now\n")


def test_a_plan_without_logs_is_not_estimated(place: Path) -> None:
    (place / "absent.toml").write_text(
        PLAN.replace('file = "sample.swf"', 'file = "absent.swf", url = "https://localhost/absent.swf"')
    )
    code, _, err = invoke(["campaign", "plan", "absent.toml", "-d", "nowhere"], cwd=place)
    assert code == 0
    assert err.startswith("2 runs, 0 of them done; when some are, this says how long the others take\n")
