from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest

from batsched_py.campaign.conduct import Conductor, conduct
from batsched_py.campaign.run import Done, Task, execute
from batsched_py.campaign.store import Campaign, Failure, State
from batsched_py.errors import InputError
from tests.campaigns import manifests

Conducted = Callable[[], Campaign]


class Here:
    """Executes in this process."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Done]:
        return map(execute, tasks)


@pytest.fixture
def conducted(conductor: Callable[[], Conductor]) -> Conducted:
    """Runs the plan as it is now."""

    def conducted() -> Campaign:
        now = conductor()
        campaign = now.campaign()
        list(conduct(campaign, now.tasks(campaign), Here()))
        return Campaign.open(campaign.folder)

    return conducted


def states(conductor: Callable[[], Conductor]) -> dict[str, str]:
    campaign = conductor().campaign()
    return {run.name: str(campaign.state(run)) for run in campaign.wanted.runs}


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_table_has_a_row_for_each_run(conducted: Conducted) -> None:
    table = conducted().table()
    assert list(table["run"]) == ["small_full_fcfs", "small_full_easy", "small_half_fcfs", "small_half_easy"]
    assert list(table["platform"]) == ["full", "full", "half", "half"]
    assert list(table["nb_jobs"]) == [60.0] * 4
    assert table["mean_waiting_time"].notna().all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_table_is_read_back(conducted: Conducted, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    campaign = conducted()
    campaign.write_table(tmp_path / f"table.{ending}")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending](tmp_path / f"table.{ending}")
    pd.testing.assert_frame_equal(read, campaign.table(), check_dtype=False)


def test_finished_runs_know_their_files(conducted: Conducted) -> None:
    for run in conducted().finished():
        assert run.jobs_file.is_file() and run.schedule_file.is_file()
        assert run.manifest.axes == run.axes


def test_a_new_scheduler_adds_its_runs_only(
    folder: Path, conducted: Conducted, conductor: Callable[[], Conductor]
) -> None:
    before = manifests(conducted().folder)
    edit(folder / "plan.toml", "easy = {}", 'easy = {}\nmixed = { name = "policies.py:Shuffled" }')
    assert [task.run for task in conductor().tasks(conductor().campaign())] == [
        "small_full_mixed",
        "small_half_mixed",
    ]
    after = manifests(conducted().folder)
    assert before.items() <= after.items()
    assert len(after) == 6


def test_another_option_makes_the_runs_that_have_it_stale(
    folder: Path, conducted: Conducted, conductor: Callable[[], Conductor]
) -> None:
    conducted()
    edit(folder / "plan.toml", "half = { hosts = 32 }", "half = { hosts = 31 }")
    assert states(conductor) == {
        "small_full_fcfs": "done",
        "small_full_easy": "done",
        "small_half_fcfs": "stale",
        "small_half_easy": "stale",
    }


def test_another_log_makes_its_runs_stale(
    folder: Path, conducted: Conducted, conductor: Callable[[], Conductor]
) -> None:
    (folder / "other.swf").write_bytes((folder / "small.swf").read_bytes())
    edit(folder / "plan.toml", "[platforms]", 'other = { file = "other.swf" }\n[platforms]')
    conducted()
    with (folder / "other.swf").open("a") as log:
        log.write("; a comment\n")
    assert {name for name, state in states(conductor).items() if state == "stale"} == {
        "other_full_fcfs",
        "other_full_easy",
        "other_half_fcfs",
        "other_half_easy",
    }


def test_stale_runs_are_replaced(folder: Path, conducted: Conducted) -> None:
    conducted()
    edit(folder / "plan.toml", "half = { hosts = 32 }", "half = { hosts = 31 }")
    campaign = conducted()
    assert len(manifests(campaign.folder)) == 4
    assert {run.manifest.experiment.scenario.machine.hosts for run in campaign.finished()} == {64, 31}


def test_a_failure_is_kept_until_the_run_succeeds(
    folder: Path, conducted: Conducted, conductor: Callable[[], Conductor]
) -> None:
    edit(folder / "plan.toml", "fcfs = {}", 'fcfs = { name = "policies.py:Broken" }')
    failures = conducted().failures
    assert list(failures) == ["small_full_fcfs", "small_half_fcfs"]
    assert failures["small_full_fcfs"].message.startswith("scheduler 'broken' failed at time 0: ")
    assert states(conductor)["small_full_fcfs"] == "failed"
    assert len(conducted().finished()) == 2
    edit(
        folder / "policies.py",
        'raise RuntimeError("I am broken")',
        "start_what_fits(list(cluster.queue), cluster)",
    )
    assert conducted().failures == {}
    assert list((folder / "results" / "failures").iterdir()) == []


def test_a_disk_that_is_full_does_not_stop_the_books(
    folder: Path, conductor: Callable[[], Conductor]
) -> None:
    campaign = conductor().campaign()
    campaign.folder.mkdir()
    (campaign.folder / "failures").write_text("this is not a folder, so nothing can be written into it")
    campaign.record_failure(Failure("small_full_fcfs", "0", "message"))
    assert campaign.state(campaign.wanted.runs[0]) is State.MISSING


def test_what_a_killed_campaign_left_behind_is_removed(conductor: Callable[[], Conductor]) -> None:
    now = conductor()
    campaign = now.campaign()
    (campaign.folder / "work" / "small_full_fcfs.abc").mkdir(parents=True)
    list(conduct(campaign, now.tasks(campaign), Here()))
    assert list((campaign.folder / "work").iterdir()) == []


def test_only_the_runs_that_are_named_are_done(conductor: Callable[[], Conductor]) -> None:
    now = conductor()
    (task,) = now.tasks(now.campaign(), ["small_half_easy"])
    assert task.run == "small_half_easy"
    with pytest.raises(InputError, match=r"there is no run 'nobody'; see `batsched-py campaign plan`"):
        now.tasks(now.campaign(), ["nobody"])


def test_a_folder_without_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"there is no campaign in this folder: .*: No such file or directory"
    ):
        Campaign.open(tmp_path)


def test_a_table_of_another_kind(conducted: Conducted, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table\.xls: a table is written as \.csv or \.parquet"):
        conducted().write_table(tmp_path / "table.xls")
