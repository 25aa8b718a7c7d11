"""The containers, as far as they can be checked without an engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement

from batsched_py.cli.main import batsched_py
from tests.processes import environment

DOCKER = Path(__file__).resolve().parents[1] / "docker"
ROOT = DOCKER.parent
COMPOSE_FILES = sorted(DOCKER.glob("compose.*.yml"))


def services(file: Path) -> dict[str, dict[str, Any]]:
    """The services of a compose file, its variables at their defaults."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", file.read_text())
    return dict(yaml.safe_load(text)["services"])


def our_command_lines() -> list[tuple[str, list[str]]]:
    return [
        (f"{file.name}:{name}", service["command"])
        for file in COMPOSE_FILES
        for name, service in services(file).items()
        if service["image"] == "batsched-py" and service["entrypoint"][-1] == "batsched-py"
    ]


def test_the_dockerfile_is_clean() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, DOCKER / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_everything_that_the_image_copies_exists() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert copied
    for sources in copied:
        for source in sources.split():
            assert (ROOT / source).exists(), source


def test_the_image_is_built_with_a_compiler_and_runs_without() -> None:
    bases = re.findall(r"^FROM python:(\S+)", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    build, final = (base.removeprefix("${PYTHON}-") for base in bases)
    assert final == f"slim-{build}"


@pytest.mark.parametrize("built", [True, False], ids=["native", "python"])
def test_the_image_is_not_built_without_the_native_engine(built: bool, tmp_path: Path) -> None:
    """What the Dockerfile runs to find out, with a package that has the extension and one that has not."""
    steps = re.findall(r"^RUN (\[.*\])$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    ((_, *arguments),) = map(json.loads, steps)
    extension = arguments[-1].removeprefix("import batsched_py.")
    assert f"NB_MODULE({extension}," in (ROOT / "native" / "binding" / "module.cpp").read_text()
    package = tmp_path / "batsched_py"
    package.mkdir()
    for name in ["__init__", *([extension] if built else [])]:
        (package / f"{name}.py").touch()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, env=environment(PYTHONPATH=str(tmp_path))
    )
    assert (done.returncode == 0) is built


def pinned() -> dict[str, list[str]]:
    """The packages of the image with their versions, and the hashes of each."""
    text = (DOCKER / "constraints.txt").read_text()
    found = {}
    for entry in text.replace("\\\n", "").splitlines():
        if not entry.startswith("#"):
            name, *hashes = entry.split()
            found[name] = hashes
    return found


def test_all_that_the_image_installs_is_named_by_version_and_hash() -> None:
    assert "--require-hashes --requirement constraints.txt" in (DOCKER / "Dockerfile").read_text()
    for name, hashes in pinned().items():
        assert re.fullmatch(r"[a-z0-9.-]+==[0-9][0-9a-z.]*", name)
        assert hashes, name
        assert all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", each) for each in hashes), name


def test_what_the_image_installs_is_what_the_project_asks_for() -> None:
    """Run `make constraints` where this fails, or where it is time for newer versions."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [said["project"]["optional-dependencies"][name] for name in ("campaign", "plots")]
    asked = [said["build-system"]["requires"], said["project"]["dependencies"], *extras]
    versions = dict(name.split("==") for name in pinned())
    for requirement in map(Requirement, (each for group in asked for each in group)):
        assert requirement.specifier.contains(versions[requirement.name]), requirement


def test_an_extension_that_the_checkout_compiled_is_left_out_of_the_image() -> None:
    assert "**/*.so" in (ROOT / ".dockerignore").read_text().splitlines()


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_a_compose_file_resolves(file: Path) -> None:
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("needs docker-compose, which is not installed")
    done = subprocess.run([compose, "-f", file, "config", "-q"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_a_compose_file_is_built_from_the_project(file: Path) -> None:
    for service in services(file).values():
        if "build" in service:
            assert (DOCKER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()


@pytest.mark.parametrize(("service", "words"), our_command_lines())
def test_a_command_of_ours_exists_with_its_options(service: str, words: list[str]) -> None:
    command: click.Command = batsched_py
    words = list(words)
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, service
        command = found
    known = {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_the_default_inputs_exist(file: Path) -> None:
    for service in services(file).values():
        for word in service.get("command", []):
            if word.startswith("/inputs/"):
                assert (ROOT / word.removeprefix("/inputs/")).is_file(), word


def test_the_example_of_an_environment_names_what_the_compose_files_use() -> None:
    """Every variable, each folder and file of them there."""
    lines = (DOCKER / ".env.example").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    used = {name for file in COMPOSE_FILES for name in re.findall(r"\$\{(\w+)", file.read_text())}
    assert set(example) == used
    inputs = DOCKER / example["INPUTS"]
    for name in ("PLATFORM", "WORKLOAD", "PLAN"):
        assert (inputs / example[name]).is_file(), name
    assert (DOCKER / example["RESULTS"]).resolve() == ROOT / "out"


@pytest.mark.parametrize("file", COMPOSE_FILES, ids=lambda file: file.name)
def test_a_service_waits_until_others_are_ready(file: Path) -> None:
    every = services(file)
    for service in every.values():
        for name, wanted in service.get("depends_on", {}).items():
            assert (wanted["condition"] == "service_healthy") == ("healthcheck" in every[name])
