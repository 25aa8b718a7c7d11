"""The commands of docker/README.md in a fresh clone, typed by a user who is not root.

The Docker engine is the test's own, and our own Batsim is in the place of the real one. The base images are
made by debootstrap, and pip finds its packages in them, so that no registry is needed.
"""

from __future__ import annotations

import json
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

from tests.processes import call_here

ROOT: Final = Path(__file__).resolve().parents[1]
DOCKER: Final = ROOT / "docker"

#: Debian 12, its Python, and what the official images of Python have beside it.
SUITE: Final = "bookworm"
PYTHON: Final = "3.11"
SLIM: Final = ("ca-certificates", "python3", "python3-venv", "python-is-python3")
FULL: Final = ("g++", "python3-dev")

#: Who types the commands: nobody that the machine or the image knows.
USER: Final = 12345

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

    def run(
        self,
        *command: str | Path,
        stdin: Any = None,
        cwd: Path | None = None,
        user: int = 0,
        **variables: str,
    ) -> str:
        """What a command prints that speaks to the engine."""
        done = subprocess.run(
            command,
            env=os.environ | {"DOCKER_HOST": self.socket, "HOME": str(cwd)} | variables,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            cwd=cwd,
            user=user,
            group=user,
            extra_groups=[],
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}"
        return done.stdout


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
        engine.folder.chmod(0o755)
        os.chown(engine.folder / "docker.sock", USER, USER)
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
            compose = ("docker-compose", "-f", DOCKER / "compose.builtin.yml")
            made.run(*compose, "build", "--build-arg", f"PYTHON={PYTHON}", cwd=ROOT)
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
    wanted = ("--require-hashes", "--requirement", str(DOCKER / "constraints.txt"))
    quietly(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"),
        *("--python-version", PYTHON, "--dest", str(folder), *wanted),
    )


def import_image(engine: Engine, tree: Path, name: str) -> None:
    with subprocess.Popen(["tar", "-C", str(tree), "-c", "."], stdout=subprocess.PIPE) as tar:
        engine.run("docker", "import", "-", name, stdin=tar.stdout, cwd=tree)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A fresh clone of the project that belongs to the user."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout of git")
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", folder], check=True)
    subprocess.run(["chown", "--recursive", f"{USER}:{USER}", folder], check=True)
    for above in (tmp_path, *tmp_path.parents):
        if above.stat().st_uid == os.getuid() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o011)
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
    said = engine.run("docker", "run", "--rm", "--network", "none", "batsched-py", "--version", cwd=ROOT)
    assert "(native engine)" in said


def test_the_image_has_no_compiler(engine: Engine) -> None:
    run = ("docker", "run", "--rm", "--network", "none", "--entrypoint", "sh", "batsched-py", "-c")
    assert engine.run(*run, "command -v c++ || echo none; id -u", cwd=ROOT).split() == ["none", "1000"]


def test_the_builtin_batsim_in_a_container(engine: Engine, clone: Path, expected: bytes) -> None:
    printed(engine, clone, "builtin")
    assert (clone / "out" / "builtin_jobs.csv").read_bytes() == expected
    assert owners(clone / "out") == {USER}


def test_the_example_of_an_environment_is_complete(engine: Engine, clone: Path, tmp_path: Path) -> None:
    """The workload of the example is the one for a Batsim, and the built-in one takes it, too."""
    shutil.copy(DOCKER / ".env.example", clone / "docker" / ".env")
    printed(engine, clone, "builtin")
    assert (clone / "out" / "builtin_jobs.csv").read_bytes() == jobs_of_a_batsim(tmp_path)


def test_results_in_a_folder_of_the_user(engine: Engine, clone: Path, expected: bytes) -> None:
    """Its owner counts, not the one of the inputs."""
    results = clone.parent / "results"
    results.mkdir()
    os.chown(results, USER + 1, USER + 1)
    printed(engine, clone, "builtin", RESULTS=str(results))
    assert (results / "builtin_jobs.csv").read_bytes() == expected
    assert owners(results) == {USER + 1}


def test_a_decision_process_beside_a_batsim(engine: Engine, clone: Path, tmp_path: Path) -> None:
    """The image of the real Batsim is one of ours with our Batsim, which takes its time at the end."""
    script = 'batsched-py batsim "$@" && sleep 2 && touch /results/last'
    entry = json.dumps(["sh", "-c", script, "batsim"])
    (tmp_path / "Dockerfile").write_text(f"FROM batsched-py\nENTRYPOINT {entry}\n")
    engine.run("docker", "build", "--tag", "our-batsim", str(tmp_path), cwd=tmp_path)
    printed(engine, clone, "batsim", BATSIM_IMAGE="our-batsim")
    assert (clone / "out" / "batsim_jobs.csv").read_bytes() == jobs_of_a_batsim(tmp_path)
    assert (clone / "out" / "last").exists()
    assert owners(clone / "out") == {USER}


def test_a_batsim_that_fails_is_told_by_the_exit_code(engine: Engine, clone: Path) -> None:
    engine.run("docker", "tag", "batsched-py", "no-batsim", cwd=clone)
    with pytest.raises(AssertionError, match="No such option"):
        printed(engine, clone, "batsim", BATSIM_IMAGE="no-batsim")


def test_a_campaign_on_workers_in_containers(engine: Engine, clone: Path) -> None:
    printed(engine, clone, "campaign")
    assert len(list((clone / "out").glob("campaign/runs/*/*jobs.csv"))) == 20
    assert (clone / "out" / "campaign" / "metrics.csv").is_file()
    assert owners(clone / "out") == {USER}


def printed(engine: Engine, clone: Path, name: str, **variables: str) -> None:
    """Do as the README says for one of the compose files, with the older spelling; remove the containers."""
    text = (DOCKER / "README.md").read_text()
    (line,) = re.findall(rf"^    docker compose (-f docker/compose\.{name}\.yml .*)$", text, re.MULTILINE)
    words = line.split()
    try:
        engine.run("docker-compose", *words, cwd=clone, user=USER, **variables)
    finally:
        down = (*words[:2], "down", "--timeout", "1")
        engine.run("docker-compose", *down, cwd=clone, user=USER, **variables)


def owners(folder: Path) -> set[int]:
    """Who owns a folder and everything in it."""
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def jobs_of_a_batsim(folder: Path) -> bytes:
    """The jobs of the sample as a Batsim reads them, simulated here."""
    platform, workload = ROOT / "platforms" / "cluster64.xml", ROOT / "workloads" / "sample.json"
    prefix = folder / "here"
    code, _, error = call_here(["run", "-p", platform, "-w", workload, "-s", "easy", "-e", prefix])
    assert code == 0, error
    return Path(f"{prefix}_jobs.csv").read_bytes()
