from __future__ import annotations

import json
from pathlib import Path

import pytest

from batsched_py.campaign.files import publish, remove_leftovers, workspace
from batsched_py.campaign.plan import CAMPAIGN_FILE, PLAN_FILE
from batsched_py.campaign.prepare import INPUTS, InputFiles
from batsched_py.trust import IMPORTED_FILE


def test_a_workspace_is_gone_afterwards(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), workspace(tmp_path, "run") as folder:
        (folder / "file").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_published_folder_has_its_place(tmp_path: Path) -> None:
    with workspace(tmp_path / "work", "run") as folder:
        (folder / "file").write_text("whole")
        publish(folder, tmp_path / "runs" / "run")
    assert (tmp_path / "runs" / "run" / "file").read_text() == "whole"
    assert list((tmp_path / "work").iterdir()) == []


def test_a_published_folder_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "runs" / "run").mkdir(parents=True)
    (tmp_path / "runs" / "run" / "old").write_text("old")
    with workspace(tmp_path / "work", "run") as folder:
        (folder / "new").write_text("new")
        publish(folder, tmp_path / "runs" / "run")
    assert [path.name for path in (tmp_path / "runs" / "run").iterdir()] == ["new"]
    assert list((tmp_path / "work").iterdir()) == []


def test_only_the_workspaces_of_a_name_are_removed(tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "nothing", "run")
    with workspace(tmp_path, "run") as left, workspace(tmp_path, "run.other") as other:
        remove_leftovers(tmp_path, "run")
        assert not left.exists()
        assert other.exists()


@pytest.mark.parametrize(("imported", "first"), [(False, "beside"), (True, "copy")])
def test_of_an_imported_campaign_the_copies_of_inputs_come_first(
    tmp_path: Path, imported: bool, first: str
) -> None:
    listed = {"inputs": [{"name": "log.swf", "copy": "1-log.swf", "sha256": ""}]}
    contents = {"log.swf": "beside", f"{INPUTS}/1-log.swf": "copy", CAMPAIGN_FILE: json.dumps(listed)}
    for name, content in (contents | ({IMPORTED_FILE: "{}"} if imported else {})).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    assert InputFiles(tmp_path / PLAN_FILE).find("log.swf").read_text() == first
