from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.campaign.files import publish, remove_leftovers, workspace


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
