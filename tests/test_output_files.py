"""Files that are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from batsched_py import output_files
from batsched_py.errors import InputError
from batsched_py.output_files import Draft, write_file, writing, writing_text


@pytest.fixture(params=["nameless", "named"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are written, on a system that knows files without names, and on one that does not."""
    if request.param == "named":
        monkeypatch.setattr(output_files, "_nameless", lambda folder: None)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_when_it_is_whole(folder: Path) -> None:
    with writing(folder / "file") as file:
        file.write(b"some")
        file.flush()
        assert "file" not in names(folder)
    assert names(folder) == ["file"]
    assert (folder / "file").read_bytes() == b"some"


def test_the_old_one_stays_until_then(folder: Path) -> None:
    (folder / "file").write_bytes(b"old")
    with writing_text(folder / "file") as file:
        file.write("new\r\n\N{MICRO SIGN}")
        file.flush()
        assert (folder / "file").read_bytes() == b"old"
    assert (folder / "file").read_bytes() == b"new\r\n\xc2\xb5"
    assert names(folder) == ["file"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_of_one_that_fails(error: BaseException, folder: Path) -> None:
    (folder / "file").write_bytes(b"old")
    for name in ("file", "other"):
        with pytest.raises(type(error)), writing_text(folder / name) as file:
            file.write("half")
            raise error
    assert names(folder) == ["file"]
    assert (folder / "file").read_bytes() == b"old"


def test_all_of_it_is_on_the_disk_before_it_has_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, int, list[str]]] = []

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        shown = [name for name in names(folder) if not name.endswith(".part")]
        synced.append((stat.S_ISREG(status.st_mode), status.st_size, shown))

    monkeypatch.setattr(os, "fsync", fsync)
    write_file(folder / "file", "text")
    assert synced[0] == (True, 4, [])
    assert [kind for kind, _, _ in synced] == [True, False]


def test_a_file_keeps_its_permissions_and_links_lead_to_it(folder: Path) -> None:
    (folder / "file").write_bytes(b"old")
    (folder / "file").chmod(0o640)
    (folder / "link").symlink_to("file")
    write_file(folder / "link", b"new")
    assert (folder / "link").is_symlink()
    assert (folder / "file").read_bytes() == b"new"
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_any_other(folder: Path) -> None:
    (folder / "other").touch()
    write_file(folder / "file", b"")
    assert (folder / "file").stat().st_mode == (folder / "other").stat().st_mode


def test_a_pipe_or_a_device_is_not_replaced(folder: Path) -> None:
    reading, written = os.pipe()
    write_file(f"/dev/fd/{written}", b"through a pipe")
    os.close(written)
    assert os.read(reading, 100) == b"through a pipe"
    os.close(reading)
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left on device"):
        write_file("/dev/full", b"much")


def test_what_cannot_be_written_is_one_line(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(InputError, match=r"file/x: cannot be written: (Not a directory|File exists)"):
        write_file(folder / "file" / "x", b"")
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        write_file(folder, b"")


def test_a_visible_draft_is_seen(folder: Path) -> None:
    draft = Draft(folder / "file", visible=True)
    assert names(folder) == ["file.part"]
    draft.abandon()
    assert names(folder) == []


#: What writes in place, and why that harms nobody.
IN_PLACE = {
    "benchmark/tasks.py": "into a folder that is removed",
    "campaign/archive.py": "into a new folder that gets its name at the end",
    "campaign/batsim.py": "into a folder that is removed",
    "slurm/forecast/backtest.py": "into a folder that is removed",
    "slurm/forecast/forecast.py": "into a folder that is removed",
    "slurm/prepared.py": "into a folder that is removed",
    "slurm/shadow/asking.py": "into a folder that is removed",
    "slurm/shadow/shadow.py": "into a folder that is removed",
    "testing/runs.py": "into a folder that is removed",
    "testing/programs.py": "into a folder that is removed",
    "wire/conversation.py": "each message is to be in the file before the next one comes",
}


def test_one_function_writes_every_file() -> None:
    package = Path(output_files.__file__).parent
    writes = re.compile(r"\.write_(text|bytes)\(|open\((\w+, )?\"[wxa]b?\"|\.to_(csv|parquet)\([\"\w]*path")
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if writes.search(path.read_text(encoding="utf-8"))
    }
    assert found == {*IN_PLACE, "output_files.py"}
