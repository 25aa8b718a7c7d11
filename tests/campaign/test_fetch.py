"""Downloads, from a server on loopback."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from batsched_py.campaign.plan import MissingLog
from batsched_py.campaign.prepare import fetch
from batsched_py.errors import InputError
from tests.campaigns import archive

CONTENT = b"1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where an archive with one log is."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "x.swf").write_bytes(CONTENT)
    with archive(folder) as address:
        yield address


def test_a_log_is_downloaded(tmp_path: Path, url: str) -> None:
    log = MissingLog(tmp_path / "logs" / "x.swf", f"{url}/x.swf", DIGEST)
    fetch(log)
    assert log.path.read_bytes() == CONTENT
    assert [path.name for path in log.path.parent.iterdir()] == ["x.swf"]


def test_another_file_under_that_name_is_refused(tmp_path: Path, url: str) -> None:
    log = MissingLog(tmp_path / "x.swf", f"{url}/x.swf", "0" * 64)
    with pytest.raises(InputError, match=f"is not the log that the plan wants: its checksum is {DIGEST}"):
        fetch(log)
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_is_not_in_the_archive(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match=r"no\.swf: cannot be downloaded to .*: File not found"):
        fetch(MissingLog(tmp_path / "no.swf", f"{url}/no.swf", None))
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be downloaded to .*refused"):
        fetch(MissingLog(tmp_path / "x.swf", "http://127.0.0.1:9/x.swf", None))
