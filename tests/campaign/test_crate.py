"""The description of an exported campaign: a Workflow Run RO-Crate, as its own validator sees it."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from batsched_py.campaign.archive import CONTENTS_FILE, export_campaign
from batsched_py.campaign.crate import CRATE_FILE
from batsched_py.campaign.store import Campaign
from tests.campaign.conftest import write_folder
from tests.campaigns import conducted
from tests.interop.test_pybatsim4 import PEERS
from tests.processes import PATIENCE

RUN = "small_full_fcfs"
VALIDATOR = Path(__file__).with_name("validate_crate.py")


@pytest.fixture(scope="module")
def campaign(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return conducted(write_folder(root, tmp_path_factory.mktemp("study")), [RUN])


@pytest.fixture(scope="module")
def archive(campaign: Campaign, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "study.zip"
    export_campaign(campaign, path)
    return path


def entities(archive: Path) -> dict[str, dict]:
    with zipfile.ZipFile(archive) as opened:
        return {each["@id"]: each for each in json.loads(opened.read(CRATE_FILE))["@graph"]}


def test_it_names_every_file_with_its_checksum(archive: Path) -> None:
    found = entities(archive)
    with zipfile.ZipFile(archive) as opened:
        digests = json.loads(opened.read(CONTENTS_FILE))["sha256"]
    told = {
        name: each["sha256"]
        for name, each in found.items()
        if each["@type"] != "CreativeWork" and "sha256" in each
    }
    assert told == {name: digest for name, digest in digests.items() if name != CRATE_FILE}
    assert {each["@id"] for each in found["./"]["hasPart"]} == {*told, CONTENTS_FILE}


def test_a_run_is_an_action_with_what_it_read_and_made(archive: Path, campaign: Campaign) -> None:
    found = entities(archive)
    action = found[f"#run-{RUN}"]
    (run,) = campaign.finished()
    assert action["instrument"] == {"@id": "plan.toml"}
    assert action["description"].startswith(run.manifest.command)
    assert {each["@id"] for each in action["result"]} == {f"runs/{RUN}/{name}" for name in run.manifest.files}
    read = {
        found[each["@id"]]["sha256"]
        for each in ([action["object"]] if isinstance(action["object"], dict) else action["object"])
    }
    assert read == {file.sha256 for file in run.manifest.inputs}
    assert action["startTime"] == run.manifest.started <= action["endTime"]


@pytest.fixture(scope="module")
def validator() -> list[str]:
    command = [str(PEERS / "python"), str(VALIDATOR)]
    probe = [command[0], "-c", "import rocrate, rocrate_validator"]
    if not (PEERS / "python").exists() or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip(
            "needs roc-validator in .venv5, which `make test` installs where there is a Python >= 3.12"
        )
    return command


@pytest.mark.slow
def test_its_validator_finds_nothing(archive: Path, validator: list[str]) -> None:
    done = subprocess.run([*validator, archive], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.slow
def test_its_validator_finds_what_is_missing(archive: Path, validator: list[str], tmp_path: Path) -> None:
    shutil.unpack_archive(archive, tmp_path)
    crate = json.loads((tmp_path / CRATE_FILE).read_text())
    for each in crate["@graph"]:
        each.pop("instrument", None)
    (tmp_path / CRATE_FILE).write_text(json.dumps(crate))
    (tmp_path / "metrics.csv").unlink()
    done = subprocess.run([*validator, tmp_path], capture_output=True, text=True, timeout=PATIENCE)
    assert "MUST have an instrument" in done.stdout
    assert "metrics.csv" in done.stdout
