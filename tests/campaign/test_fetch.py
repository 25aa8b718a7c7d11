"""Downloads, from a server on loopback."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from batsched_py.campaign import prepare
from batsched_py.campaign.plan import MissingLog
from batsched_py.campaign.prepare import fetch
from batsched_py.errors import InputError
from tests.campaigns import archive, write_certificate

CONTENT = b"1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Elsewhere(BaseHTTPRequestHandler):
    """Sends everybody to another address."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://127.0.0.1:9/x.swf")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That of the server, which is trusted here."""
    file = write_certificate(tmp_path_factory.mktemp("certificate") / "both.pem")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield file


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[str]:
    """Where an archive with one log is."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "x.swf").write_bytes(CONTENT)
    with archive(folder, certificate) as address:
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
        fetch(MissingLog(tmp_path / "x.swf", "https://127.0.0.1:9/x.swf", None))


def test_a_file_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "there.swf").write_bytes(CONTENT)
    fetch(MissingLog(tmp_path / "x.swf", (tmp_path / "there.swf").as_uri(), DIGEST))
    assert (tmp_path / "x.swf").read_bytes() == CONTENT


@pytest.mark.parametrize("scheme", ["http", "ftp", "file", "data"])
def test_nothing_is_fetched_where_anybody_may_listen(scheme: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="logs are downloaded by https:// only"):
        fetch(MissingLog(tmp_path / "x.swf", f"{scheme}://127.0.0.1/x.swf", None))
    assert list(tmp_path.iterdir()) == []


def test_a_server_may_not_send_one_there_either(tmp_path: Path, certificate: Path) -> None:
    with (
        archive(tmp_path, certificate, Elsewhere) as url,
        pytest.raises(InputError, match=r"leads to http://127.0.0.1:9/x.swf; .* by https:// only"),
    ):
        fetch(MissingLog(tmp_path / "x.swf", f"{url}/x.swf", None))
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_an_end_is_refused(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "LARGEST_LOG", len(CONTENT) - 1)
    with pytest.raises(InputError, match=r"x\.swf: is larger than .* GiB"):
        fetch(MissingLog(tmp_path / "x.swf", f"{url}/x.swf", DIGEST))
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_nobody_vouches_for_is_refused(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(InputError, match="certificate verify failed"):
        fetch(MissingLog(tmp_path / "x.swf", f"{url}/x.swf", DIGEST))
    assert list(tmp_path.iterdir()) == []
