"""The compose files on a Docker engine of the test's own, with our own Batsim in the place of the real one.

The base images are made by debootstrap, and pip finds its packages in them, so that no registry is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.processes import call_here

ROOT: Final = Path(__file__).resolve().parents[1]
DOCKER: Final = ROOT / "docker"

#: Debian 12, its Python, and what the official images of Python have beside it.
SUITE: Final = "bookworm"
PYTHON: Final = "3.11"
SLIM: Final = ("ca-certificates", "python3", "python3-venv", "python-is-python3")
FULL: Final = ("g++", "python3-dev")

#: Longer than anything here takes on a busy machine.
PATIENCE: Final = 1800

pytestmark = pytest.mark.slow


def missing() -> str | None:
    """What the test lacks, if anything."""
    programs = ("dockerd", "docker", "docker-compose", "debootstrap", "iptables", "unshare")
    absent = [program for program in programs if shutil.which(program) is None]
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux"
    return f"needs {', '.join(absent)}, not installed" if absent else None


class Engine:
    """A Docker engine with everything that it keeps in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"unix://{folder}/docker.sock"

    def start(self) -> subprocess.Popen[bytes]:
        """The engine, with network and mounts of its own, so that those of the machine stay as they are."""
        command = ["unshare", "--net", "--mount", "dockerd", "--host", self.socket]
        for name in ("data-root", "exec-root"):
            command += [f"--{name}", str(self.folder / name)]
        command += ["--pidfile", str(self.folder / "docker.pid")]
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def run(self, *command: str | Path, stdin: Any = None, **variables: str) -> str:
        """What a command prints that speaks to the engine."""
        done = subprocess.run(
            command,
            env=os.environ | {"DOCKER_HOST": self.socket} | variables,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}"
        return done.stdout

    def compose(self, *arguments: str | Path, project: str = "batsched", **variables: str) -> str:
        """The same for docker-compose."""
        return self.run("docker-compose", "-p", project, *arguments, **variables)


@contextmanager
def running(engine: Engine) -> Iterator[None]:
    """An engine that is ready, and gone afterwards with all its containers."""
    process = engine.start()
    try:
        until = time.monotonic() + 600
        while subprocess.run(["docker", "-H", engine.socket, "info"], capture_output=True).returncode:
            if process.poll() is not None or time.monotonic() > until:
                log = (engine.folder / "log").read_text(errors="replace").splitlines()
                pytest.skip(f"no Docker engine runs here: {log[-1] if log else 'it says nothing'}")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(600)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="containers-", ignore_cleanup_errors=True) as name:
        made = Engine(Path(name))
        with running(made):
            make_bases(made, made.folder / "tree")
            made.compose("-f", DOCKER / "compose.builtin.yml", "build", "--build-arg", f"PYTHON={PYTHON}")
            yield made


def make_bases(engine: Engine, tree: Path) -> None:
    """Stand-ins for the two images that ours is made of, without and with a compiler."""
    quietly("debootstrap", "--variant=minbase", f"--include={','.join(SLIM)}", SUITE, str(tree))
    import_image(engine, tree, f"python:{PYTHON}-slim-{SUITE}")
    quietly("chroot", str(tree), "apt-get", "install", "--yes", "--no-install-recommends", *FULL)
    download_packages(tree / "wheels")
    (tree / "etc" / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    import_image(engine, tree, f"python:{PYTHON}-{SUITE}")


def quietly(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        pytest.skip(f"{command[0]} cannot make a base image here: {(done.stdout + done.stderr)[-300:]}")


def download_packages(folder: Path) -> None:
    """What the image installs, from wherever pip gets it on this machine."""
    project = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(
        r"^(?:requires|dependencies|plots|campaign) = (\[.*?\])", project, re.MULTILINE | re.DOTALL
    )
    wanted = [package for each in lists for package in yaml.safe_load(each)]
    assert len(wanted) > 10
    quietly(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"),
        *("--python-version", PYTHON, "--dest", str(folder), "pip", *wanted),
    )


def import_image(engine: Engine, tree: Path, name: str) -> None:
    with subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE) as tar:
        engine.run("docker", "import", "-", name, stdin=tar.stdout)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder that the user of the image can write to."""
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    tmp_path.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The jobs of the sample under EASY, simulated here."""
    prefix = tmp_path_factory.mktemp("here") / "here"
    sample = ROOT / "workloads" / "sample.swf"
    code, _, error = call_here(["run", "-w", sample, "--hosts", "64", "-s", "easy", "-e", prefix])
    assert code == 0, error
    return Path(f"{prefix}_jobs.csv").read_bytes()


def test_the_image_has_the_native_engine_and_says_so(engine: Engine) -> None:
    said = engine.run("docker", "run", "--rm", "--network", "none", "batsched-py", "--version")
    assert "(native engine)" in said


def test_the_image_has_no_compiler(engine: Engine) -> None:
    run = ("docker", "run", "--rm", "--network", "none", "--entrypoint", "sh", "batsched-py", "-c")
    assert engine.run(*run, "command -v c++ || echo none; id -u").split() == ["none", "1000"]


def test_the_builtin_batsim_in_a_container(engine: Engine, results: Path, expected: bytes) -> None:
    file = DOCKER / "compose.builtin.yml"
    engine.compose("-f", file, "run", "--rm", "simulation", RESULTS=str(results))
    assert (results / "builtin_jobs.csv").read_bytes() == expected


def test_a_decision_process_beside_a_batsim(engine: Engine, results: Path, tmp_path: Path) -> None:
    """The image of the real Batsim is one of ours, whose entry point is our Batsim."""
    (tmp_path / "Dockerfile").write_text('FROM batsched-py\nENTRYPOINT ["batsched-py", "batsim"]\n')
    engine.run("docker", "build", "--tag", "our-batsim", str(tmp_path))
    file = DOCKER / "compose.batsim.yml"
    up(engine, file, RESULTS=str(results), BATSIM_IMAGE="our-batsim")
    platform, workload = ROOT / "platforms" / "cluster64.xml", ROOT / "workloads" / "sample.json"
    here = tmp_path / "here"
    code, _, error = call_here(["run", "-p", platform, "-w", workload, "-s", "easy", "-e", here])
    assert code == 0, error
    assert (results / "batsim_jobs.csv").read_bytes() == Path(f"{here}_jobs.csv").read_bytes()


def test_a_campaign_on_workers_in_containers(engine: Engine, results: Path) -> None:
    up(engine, DOCKER / "compose.campaign.yml", RESULTS=str(results), WORKERS="2")
    jobs = sorted(results.glob("campaign/**/*jobs.csv"))
    assert len(jobs) == 20
    assert (results / "campaign" / "metrics.csv").is_file()


def up(engine: Engine, file: Path, **variables: str) -> None:
    """Start all services of a file until one is done, and remove them."""
    project = file.name.split(".")[1]
    try:
        engine.compose(
            "-f", file, "up", "--no-build", "--abort-on-container-exit", project=project, **variables
        )
    finally:
        engine.compose("-f", file, "down", "--timeout", "1", project=project, **variables)
