from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.campaign.archive import export_campaign, import_campaign
from batsched_py.campaign.store import Campaign
from batsched_py.errors import InputError
from tests.campaigns import conducted, manifests, planned, results


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kept for all tests of this module once one of them has made it."""
    return {"archive": tmp_path_factory.mktemp("finished") / "campaign.zip"}


@pytest.fixture
def campaign(folder: Path) -> Campaign:
    return conducted(folder, ["small_full_fcfs", "small_full_easy"])


@pytest.fixture
def archive(finished: dict[str, Path], request: pytest.FixtureRequest) -> Path:
    """The archive of a campaign of which two runs are finished."""
    if not finished["archive"].exists():
        export_campaign(request.getfixturevalue("campaign"), finished["archive"])
    return finished["archive"]


def test_what_is_exported_is_imported(campaign: Campaign, tmp_path: Path) -> None:
    assert export_campaign(campaign, tmp_path / "campaign.zip") == 2
    again = import_campaign(tmp_path / "campaign.zip", tmp_path / "again")
    assert results(again.folder) == results(campaign.folder)
    assert manifests(again.folder) == manifests(campaign.folder)
    assert again.plan_text == campaign.plan_text
    assert [run.name for run in again.finished()] == ["small_full_fcfs", "small_full_easy"]


def test_the_same_results_make_the_same_archive(campaign: Campaign, tmp_path: Path) -> None:
    export_campaign(campaign, tmp_path / "one.zip")
    export_campaign(campaign, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_folder_that_is_there_is_not_overwritten(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    with pytest.raises(InputError, match="again: is there already; import into a new folder"):
        import_campaign(archive, tmp_path / "again")


def change(archive: Path, changed: Path, edit: Callable[[dict[str, bytes]], None]) -> Path:
    """A copy of an archive with other files in it."""
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    edit(files)
    with zipfile.ZipFile(changed, "w") as new:
        for name, content in files.items():
            new.writestr(name, content)
    return changed


JOBS = "runs/small_full_easy/out_jobs.csv"


def forge(files: dict[str, bytes]) -> None:
    """Change a result, and the list of contents with it."""

    files[JOBS] = files[JOBS].replace(b"1", b"2")
    contents = json.loads(files["contents.json"])
    contents["sha256"][JOBS] = hashlib.sha256(files[JOBS]).hexdigest()
    files["contents.json"] = json.dumps(contents).encode()


def escape(files: dict[str, bytes]) -> None:
    contents = json.loads(files["contents.json"])
    contents["sha256"]["../evil"] = contents["sha256"]["plan.toml"]
    files["contents.json"] = json.dumps(contents).encode()
    files["../evil"] = files["plan.toml"]


def lose_a_manifest(files: dict[str, bytes]) -> None:
    contents = json.loads(files["contents.json"])
    name = "runs/small_full_easy/manifest.json"
    del contents["sha256"][name], files[name]
    files["contents.json"] = json.dumps(contents).encode()


DAMAGES: dict[str, tuple[Callable[[dict[str, bytes]], object], str]] = {
    "changed": (lambda files: files.update({JOBS: b"x"}), f"{JOBS} is not what was exported"),
    "forged": (forge, "the run small_full_easy is incomplete, not what its manifest tells of, or"),
    "lost": (lambda files: files.pop(JOBS), f"does not hold what its list of contents says: {JOBS}"),
    "added": (lambda files: files.update(more=b""), "does not hold what its list of contents says: more"),
    "escaping": (escape, "has a file '../evil', which no campaign has"),
    "incomplete": (
        lose_a_manifest,
        "the run small_full_easy is incomplete, not what its manifest tells of, or",
    ),
    "no contents": (lambda files: files.pop("contents.json"), "there is no list of contents in it"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_archive_that_was_tampered_with_is_refused(archive: Path, tmp_path: Path, damage: str) -> None:
    edit, message = DAMAGES[damage]
    changed = change(archive, tmp_path / "changed.zip", edit)  # type: ignore[arg-type]
    with pytest.raises(InputError) as raised:
        import_campaign(changed, tmp_path / "again")
    assert message in str(raised.value)
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_a_damaged_archive_is_refused(archive: Path, tmp_path: Path, place: float) -> None:
    content = bytearray(archive.read_bytes())
    start = int(len(content) * place)
    content[start : start + 100] = bytes(100)
    (tmp_path / "damaged.zip").write_bytes(content)
    with pytest.raises(InputError, match=r"damaged\.zip: "):
        import_campaign(tmp_path / "damaged.zip", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_text("hello")
    with pytest.raises(InputError, match=r"x\.zip: is damaged, or no archive of a campaign: "):
        import_campaign(tmp_path / "x.zip", tmp_path / "again")


def test_nothing_to_export(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run is finished, so there is nothing to export"):
        export_campaign(planned(folder), tmp_path / "x.zip")
