from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from msgspec import structs

from batsched_py import __version__, native
from batsched_py.campaign import files
from batsched_py.campaign.finished import why_stale
from batsched_py.campaign.run import RunResult, State
from batsched_py.campaign.store import Campaign, conduct
from batsched_py.errors import InputError
from tests.campaigns import Here, conducted, manifests, planned, to_do


def states(folder: Path) -> dict[str, str]:
    return {result.name: str(result.state) for result in planned(folder).results()}


def reasons(folder: Path) -> set[str]:
    """Why runs are stale."""
    return {
        why_stale(each.folder, each.run) for each in planned(folder).results() if each.state is State.STALE
    }


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_table_has_a_row_for_each_run(folder: Path) -> None:
    table = conducted(folder).table()
    assert list(table["run"]) == ["small_full_fcfs", "small_full_easy", "small_half_fcfs", "small_half_easy"]
    assert list(table["platform"]) == ["full", "full", "half", "half"]
    assert list(table["nb_jobs"]) == [60.0] * 4
    assert table["mean_waiting_time"].notna().all()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_table_is_read_back(folder: Path, tmp_path: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    campaign = conducted(folder)
    campaign.write_table(tmp_path / f"table.{ending}")
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending](tmp_path / f"table.{ending}")
    pd.testing.assert_frame_equal(read, campaign.table(), check_dtype=False)


def test_finished_runs_know_their_files(folder: Path) -> None:
    for run in conducted(folder).finished():
        assert run.jobs_file.is_file() and run.schedule_file.is_file()
        assert run.manifest.axes == run.axes


def test_the_list_of_runs_has_what_tells_them_apart(folder: Path) -> None:
    campaign = conducted(folder, ["small_full_fcfs"])
    listed = json.loads((campaign.folder / "campaign.json").read_text())["runs"]
    assert [list(run) for run in listed] == [["name", "identity", "axes"]] * 4


def test_a_manifest_of_a_former_version_is_understood(folder: Path) -> None:
    """It does not say which engine ran, and nobody knows its checksum."""
    campaign = conducted(folder, ["small_full_fcfs"])
    (run,) = campaign.finished()
    file = run.folder / "manifest.json"
    content = json.loads(file.read_text())
    del content["engine"]
    file.write_text(json.dumps(content))
    (run.folder / "manifest.sha256").unlink()
    (again,) = Campaign.open(campaign.folder).finished()
    assert (again.manifest.engine, again.manifest.code) == ("", run.manifest.code)


def test_the_other_engine_leaves_runs_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python engine has no version of its own; runs of another version of the native one are stale."""
    conducted(folder)
    monkeypatch.setattr(native, "library", None)
    assert set(states(folder).values()) == {"done"}
    for each in planned(folder).finished():
        structs.replace(each.manifest, engine="native", engine_sources="one").write(each.folder)
    assert set(states(folder).values()) == {"done"}
    monkeypatch.setattr(native, "library", SimpleNamespace(SOURCES="one"))
    assert set(states(folder).values()) == {"done"}
    monkeypatch.setattr(native, "library", SimpleNamespace(SOURCES="two"))
    assert set(states(folder).values()) == {"stale"}
    assert reasons(folder) == {"the native engine has changed"}


def test_stale_runs_say_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = conducted(folder)
    edit(folder / "plan.toml", "half = { hosts = 32 }", "half = { hosts = 31 }")
    assert reasons(folder) == {"another hosts (32, now 31)"}
    edit(folder / "plan.toml", "half = { hosts = 31 }", "half = { hosts = 32 }")
    with (folder / "small.swf").open("a") as log:
        log.write("; a comment\n")
    assert reasons(folder) == {"small.swf has changed"}
    conducted(folder)
    (campaign.folder / "runs" / "small_half_fcfs" / "metrics.json").write_text("{}")
    assert reasons(folder) == {"its files were changed after it was done"}
    conducted(folder)
    monkeypatch.setattr(files, "_digest_of_modules", lambda roots: "another")
    assert reasons(folder) == {f"the code has changed (it was done by version {__version__})"}


def test_a_new_scheduler_adds_its_runs_only(folder: Path) -> None:
    before = manifests(conducted(folder).folder)
    edit(folder / "plan.toml", "easy = {}", 'easy = {}\nmixed = { name = "policies.py:Shuffled" }')
    assert [run.name for run in to_do(folder)] == [
        "small_full_mixed",
        "small_half_mixed",
    ]
    after = manifests(conducted(folder).folder)
    assert before.items() <= after.items()
    assert len(after) == 6


def test_another_option_makes_the_runs_that_have_it_stale(folder: Path) -> None:
    conducted(folder)
    edit(folder / "plan.toml", "half = { hosts = 32 }", "half = { hosts = 31 }")
    assert states(folder) == {
        "small_full_fcfs": "done",
        "small_full_easy": "done",
        "small_half_fcfs": "stale",
        "small_half_easy": "stale",
    }


def test_another_log_makes_its_runs_stale(folder: Path) -> None:
    (folder / "other.swf").write_bytes((folder / "small.swf").read_bytes())
    edit(folder / "plan.toml", "[platforms]", 'other = { file = "other.swf" }\n[platforms]')
    conducted(folder)
    with (folder / "other.swf").open("a") as log:
        log.write("; a comment\n")
    assert {name for name, state in states(folder).items() if state == "stale"} == {
        "other_full_fcfs",
        "other_full_easy",
        "other_half_fcfs",
        "other_half_easy",
    }


def test_stale_runs_are_replaced(folder: Path) -> None:
    conducted(folder)
    edit(folder / "plan.toml", "half = { hosts = 32 }", "half = { hosts = 31 }")
    campaign = conducted(folder)
    assert len(manifests(campaign.folder)) == 4
    assert {run.manifest.experiment.scenario.machine.hosts for run in campaign.finished()} == {64, 31}


def test_a_failure_is_kept_until_the_run_succeeds(folder: Path) -> None:
    edit(folder / "plan.toml", "fcfs = {}", 'fcfs = { name = "policies.py:Broken" }')
    errors = {each.name: each.error for each in conducted(folder).results() if each.state is State.FAILED}
    assert list(errors) == ["small_full_fcfs", "small_half_fcfs"]
    assert str(errors["small_full_fcfs"]).startswith("scheduler 'broken' failed at time 0: ")
    assert states(folder)["small_full_fcfs"] == "failed"
    assert len(conducted(folder).finished()) == 2
    edit(
        folder / "policies.py",
        'raise RuntimeError("I am broken")',
        "start_what_fits(list(cluster.queue), cluster)",
    )
    assert {result.state for result in conducted(folder).results()} == {State.DONE}
    assert list((folder / "results" / "failures").iterdir()) == []


def test_a_disk_that_is_full_does_not_stop_the_campaign(folder: Path) -> None:
    campaign = planned(folder)
    campaign.folder.mkdir()
    (campaign.folder / "failures").write_text("this is not a folder, so nothing can be written into it")
    run = campaign.wanted.runs[0]
    campaign.record(RunResult.failed(run, "message"))
    assert campaign.result(run).state is State.MISSING


def test_what_a_killed_campaign_left_behind_is_removed(folder: Path) -> None:
    campaign = planned(folder)
    (campaign.folder / "work" / "small_full_fcfs.abc").mkdir(parents=True)
    list(conduct(campaign, to_do(folder), Here()))
    assert list((campaign.folder / "work").iterdir()) == []


def test_only_the_runs_that_are_named_are_done(folder: Path) -> None:
    (run,) = to_do(folder, ["small_half_easy"])
    assert run.name == "small_half_easy"
    with pytest.raises(InputError, match=r"there is no run 'nobody'; see `batsched-py campaign plan`"):
        to_do(folder, ["nobody"])


def test_a_folder_without_a_campaign(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"there is no campaign in this folder: .*: No such file or directory"
    ):
        Campaign.open(tmp_path)


def test_a_table_of_another_kind(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"table\.xls: a table is written as \.csv or \.parquet"):
        conducted(folder).write_table(tmp_path / "table.xls")
