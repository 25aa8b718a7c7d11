"""Campaigns as processes of their own, what kills them, and what they leave behind."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread

from batsched_py.campaign.executors import execute
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.run import Run, RunResult
from batsched_py.campaign.store import Campaign, conduct, planned_campaign, runs_to_do
from tests.processes import PATIENCE

#: What a run's results are; its manifest has wall-clock times, and so is another each time.
RESULTS = ("metrics.json", "out_jobs.csv", "out_schedule.csv")


class Here:
    """Executes runs in this process."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        return map(execute, runs)


def planned(folder: Path, results: str = "results", simulator: str = "built-in") -> Campaign:
    """The campaign that ``plan.toml`` in a folder asks for as it is now, with its results beside it."""
    return planned_campaign(read_plan(folder / "plan.toml"), folder / results, simulator)


def to_do(
    folder: Path, only: Sequence[str] = (), results: str = "results", simulator: str = "built-in"
) -> list[Run]:
    """The runs of that campaign that are not done."""
    plan = read_plan(folder / "plan.toml")
    return runs_to_do(plan, planned_campaign(plan, folder / results, simulator), only)


def conducted(folder: Path, only: Sequence[str] = (), results: str = "results") -> Campaign:
    """That campaign after these runs, or all, were done in this process."""
    campaign = planned(folder, results)
    assert list(conduct(campaign, to_do(folder, only, results), Here()))
    return Campaign.open(campaign.folder)


def results(campaign: Path) -> dict[str, bytes]:
    """All results of all runs, and the table, by the name of the file."""
    files = {
        f"{run.name}/{name}": (run / name).read_bytes()
        for run in sorted((campaign / "runs").iterdir())
        for name in RESULTS
    }
    return files | {"metrics.csv": (campaign / "metrics.csv").read_bytes()}


def manifests(campaign: Path) -> dict[str, bytes]:
    """The manifests of the runs that are there; each must be true."""
    found = {}
    for run in sorted((campaign / "runs").glob("*")):
        content = (run / "manifest.json").read_bytes()
        for result in json.loads(content)["results"]:
            assert hashlib.sha256((run / result["path"]).read_bytes()).hexdigest() == result["sha256"]
        found[run.name] = content
    return found


def seal_of(manifest: bytes) -> bytes:
    """What lies beside a manifest."""
    return f"{hashlib.sha256(manifest).hexdigest()}  manifest.json\n".encode()


def workers(campaign: int) -> list[int]:
    """The worker processes of a campaign: the children of the process that forks them for it."""
    return [
        worker for server in _children(campaign, b"forkserver") for worker in _children(server, b"forkserver")
    ]


def _children(parent: int, command: bytes) -> list[int]:
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return [int(pid) for pid in children if command in Path(f"/proc/{pid}/cmdline").read_bytes()]
    except OSError:
        return []


def kill(pid: int) -> None:
    """As abruptly as possible."""
    os.kill(pid, signal.SIGKILL)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def archive(
    folder: Path, certificate: Path | None = None, handler: type[BaseHTTPRequestHandler] = _Quiet
) -> Iterator[str]:
    """A web server on loopback with the files of a folder: its address; with a certificate, by https."""
    made = partial(handler, directory=str(folder)) if handler is _Quiet else handler
    with ThreadingHTTPServer(("127.0.0.1", 0), made) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
        server.shutdown()


def write_certificate(file: Path) -> Path:
    """A new key with a certificate of its own for 127.0.0.1, in one file, to be trusted by SSL_CERT_FILE."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "archive")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(private + certificate.public_bytes(encoding))
    return file


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Until something has happened; bounded."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited too long until {what}"
        time.sleep(0.03)
