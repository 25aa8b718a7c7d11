"""Archives that were made to do harm: nothing of them is executed, nothing lands outside their folder."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from batsched_py.campaign.archive import LARGEST_LIST, export_campaign, import_campaign
from batsched_py.campaign.run import State
from batsched_py.campaign.store import Campaign
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from tests.campaign.conftest import write_folder
from tests.campaigns import conducted, seal_of
from tests.processes import PROGRESS

RUN = "small_full_fcfs"
JOBS = f"runs/{RUN}/out_jobs.csv"
MANIFEST = f"runs/{RUN}/manifest.json"

#: Users whose file leaves a trace as soon as it is loaded.
EVIL = """from pathlib import Path
from batsched_py.users.think_time import ThinkTime

Path(__file__).with_name("executed").touch()


class Evil(ThinkTime):
    name = "evil"
"""

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def original(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan, with a campaign of which one run is finished and its archive."""
    folder = write_folder(root, tmp_path_factory.mktemp("original"))
    export_campaign(conducted(folder, [RUN]), folder / "good.zip")
    return folder


@pytest.fixture
def campaign(original: Path, tmp_path: Path) -> Campaign:
    """That campaign, to be changed at will."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return Campaign.open(tmp_path / "results")


@pytest.fixture
def archive(original: Path, tmp_path: Path) -> Path:
    """That archive, beside the log."""
    shutil.copy(original / "small.swf", tmp_path)
    return original / "good.zip"


def forge(
    archive: Path, forged: Path, edit: Callable[[Files], object], honest: bool = True, sealed: bool = True
) -> Path:
    """A copy with other files in it.

    Its list of contents is right if it is ``honest``, the checksum of its manifest if that is ``sealed``.
    """
    with zipfile.ZipFile(archive) as old:
        files = {name: old.read(name) for name in old.namelist()}
    edit(files)
    if sealed and MANIFEST in files and f"runs/{RUN}/manifest.sha256" in files:
        files[f"runs/{RUN}/manifest.sha256"] = seal_of(files[MANIFEST])
    if honest:
        contents = json.loads(files.pop("contents.json"))
        contents["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
        files["contents.json"] = json.dumps(contents).encode()
    with zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in files.items():
            new.writestr(name, content)
    return forged


def change_manifest(files: Files, edit: Callable[[dict[str, object]], object]) -> None:
    manifest = json.loads(files[MANIFEST])
    edit(manifest)
    files[MANIFEST] = json.dumps(manifest).encode()


def name_users(file: Path) -> Callable[[Files], None]:
    users = {"name": f"{file}:Evil", "options": {}}
    return lambda files: change_manifest(
        files,
        lambda manifest: manifest["experiment"]["actors"].update(users=users),  # type: ignore[index]
    )


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, list(map(str, arguments)))


def give_metrics(run: Path, content: bytes) -> None:
    """Other metrics in the folder of a run, of which its manifest knows."""
    (run / "metrics.json").write_bytes(content)
    manifest = json.loads((run / "manifest.json").read_text())
    for result in manifest["results"]:
        result["sha256"] = hashlib.sha256((run / result["path"]).read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "manifest.sha256").write_bytes(seal_of((run / "manifest.json").read_bytes()))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- code ------------------------------------------------------------------------------------------


def test_code_that_a_manifest_names_is_executed_by_nobody_until_it_is_trusted(
    archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "evil.py").write_text(EVIL)
    forged = forge(archive, tmp_path / "forged.zip", name_users(tmp_path / "evil.py"))
    page, folder = tmp_path / "report.html", tmp_path / "again"
    assert invoke("campaign", "import", forged, folder).exit_code == 0
    assert invoke("campaign", "show", folder, RUN).exit_code == 0
    assert invoke("campaign", "report", folder).exit_code == 0
    assert invoke("campaign", "report", folder, "--output", page).exit_code == 0
    assert invoke("campaign", "export", folder, tmp_path / "once-more.zip").exit_code == 0
    assert not (tmp_path / "executed").exists()
    assert f"Session graphs of {tmp_path / 'evil.py'} need --trust" in page.read_text()
    assert invoke("campaign", "report", folder, "--output", page, "--trust").exit_code == 0
    assert (tmp_path / "executed").exists()
    assert "need --trust" not in page.read_text()


@pytest.mark.parametrize("table", ["schedulers", "users"])
def test_code_that_an_imported_plan_names_is_not_executed_until_it_is_trusted(
    archive: Path, tmp_path: Path, table: str
) -> None:
    (tmp_path / "evil.py").write_text(EVIL)
    plan = f'[logs]\nx = {{ file = "{tmp_path / "small.swf"}" }}\n[schedulers]\neasy = {{}}\n'
    plan += f'[{table}.y]\nname = "{tmp_path / "evil.py"}:Evil"\n'
    forged = forge(archive, tmp_path / "forged.zip", lambda files: files.update({"plan.toml": plan.encode()}))
    import_campaign(forged, tmp_path / "again")
    for command in ("plan", "status", "run"):
        result = invoke("campaign", command, tmp_path / "again" / "plan.toml")
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "this plan was imported; to use" in result.stderr
    assert not (tmp_path / "executed").exists()
    invoke("campaign", "plan", tmp_path / "again" / "plan.toml", "--trust")
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("name", ["evil.py", "sitecustomize.py", "imported.json", f"runs/{RUN}/evil.py"])
def test_an_archive_brings_no_other_files_than_a_campaign_has(
    archive: Path, tmp_path: Path, name: str
) -> None:
    forged = forge(archive, tmp_path / "forged.zip", lambda files: files.update({name: b"{}"}))
    with pytest.raises(InputError, match="which no campaign has"):
        import_campaign(forged, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_imported_campaign_is_reported_without_reading_outside_of_it(
    archive: Path, tmp_path: Path
) -> None:
    import_campaign(archive, tmp_path / "again")
    invoke("campaign", "report", tmp_path / "again", "--output", tmp_path / "cautious.html")
    invoke("campaign", "report", tmp_path / "again", "--output", tmp_path / "trusting.html", "--trust")
    lacking = "Not drawn, for want of the log small"
    assert lacking in (tmp_path / "cautious.html").read_text()
    assert lacking not in (tmp_path / "trusting.html").read_text()


def test_a_list_of_files_without_end_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Each entry of the list is 46 bytes and becomes half a kilobyte of memory."""
    entry = b"PK\1\2" + bytes(42)
    count = LARGEST_LIST // len(entry) + 1
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, count * len(entry), 0, 0)
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(entry * count + end)
    with pytest.raises(InputError, match=r"bomb\.zip: lists more files than the 100000 that are the most"):
        import_campaign(bomb, tmp_path / "again")
    assert not (tmp_path / "again").exists()


# --- zip-slip --------------------------------------------------------------------------------------

OUTSIDE = (
    "../evil",
    "/tmp/evil",
    "runs/../../evil",
    "runs/x/../../../evil",
    "runs\\..\\..\\evil",
    "C:\\evil",
)
OUTSIDE += ("runs//evil", "./plan.toml", "runs/./x/y", "runs/a/b/c", "runs/x\x1b[2J/evil", "..", "runs/../x")


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_path_that_leaves_the_folder_is_refused(archive: Path, tmp_path: Path, name: str) -> None:
    forged = forge(archive, tmp_path / "forged.zip", lambda files: files.update({name: b"evil"}))
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match="which no campaign has"):
        import_campaign(forged, tmp_path / "again")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("path", ["../../../secret", "/etc/hostname", "../metrics.json"])
def test_a_manifest_does_not_point_outside_its_run(archive: Path, tmp_path: Path, path: str) -> None:
    def point(manifest: dict[str, object]) -> None:
        manifest["results"][0]["path"] = path  # type: ignore[index]

    forged = forge(archive, tmp_path / "forged.zip", lambda files: change_manifest(files, point))
    with pytest.raises(InputError, match=f"the run {RUN} is incomplete"):
        import_campaign(forged, tmp_path / "again")


@pytest.mark.parametrize("name", ["../../secret", "/etc", "a\x1b[2Jb", ""])
def test_a_run_with_a_name_that_is_a_path_is_refused(campaign: Campaign, name: str) -> None:
    file = campaign.folder / "campaign.json"
    content = json.loads(file.read_text())
    content["runs"][0]["name"] = name
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="no campaign has such a run"):
        Campaign.open(campaign.folder)


def test_what_a_link_leads_to_is_not_exported(campaign: Campaign, tmp_path: Path) -> None:
    result = campaign.folder / JOBS
    (tmp_path / "secret").write_bytes(result.read_bytes())
    result.unlink()
    result.symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="lies outside the campaign"):
        export_campaign(campaign, tmp_path / "x.zip")
    assert not list(tmp_path.glob("x.zip*"))


# --- bombs -----------------------------------------------------------------------------------------


def bomb(archive: Path, path: Path, name: str, size: int) -> Path:
    """The archive with one file of zeros, which take next to no room in it."""
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for other in old.namelist():
            if other != name:
                new.writestr(other, old.read(other))
        with new.open(name, "w", force_zip64=True) as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
    return path


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        (JOBS, 64 << 20, "is more than 200 times as large as in the archive"),
        ("contents.json", 65 << 20, "has 68157440 bytes; 67108864 are the most"),
        (MANIFEST, 65 << 20, "has 68157440 bytes; 67108864 are the most"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(
    archive: Path, tmp_path: Path, name: str, size: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        import_campaign(bomb(archive, tmp_path / "bomb.zip", name, size), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_file_that_is_larger_than_it_says_is_refused(archive: Path, tmp_path: Path) -> None:
    """Its size is told twice in an archive; whoever lies there must not get more unpacked."""
    path = bomb(archive, tmp_path / "bomb.zip", JOBS, 8 << 20)
    content = path.read_bytes()
    assert content.count((8 << 20).to_bytes(4, "little")) >= 1
    path.write_bytes(content.replace((8 << 20).to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    with pytest.raises(InputError):
        import_campaign(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["contents.json", JOBS])
def test_a_file_that_does_not_unpack_piece_by_piece_is_refused(
    archive: Path, tmp_path: Path, method: int, name: str
) -> None:
    """Of these methods, a few bytes may unpack to any size at once, whatever size they claim."""
    path, size = tmp_path / "bomb.zip", 1 << 20
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for other in old.namelist():
            if other != name:
                new.writestr(other, old.read(other))
        new.writestr(name, bytes(size), method)
    content = path.read_bytes()
    assert content.count(size.to_bytes(4, "little")) >= 1
    path.write_bytes(content.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little")))
    with pytest.raises(InputError, match=f"{name!r} is compressed by another method than deflate"):
        import_campaign(path, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_too_many_files_are_refused(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batsched_py.campaign.archive.MOST_FILES", 5)
    with pytest.raises(InputError, match="holds 11 files; 5 are the most"):
        import_campaign(archive, tmp_path / "again")


# --- wrong hashes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [JOBS, f"runs/{RUN}/metrics.json", "plan.toml", MANIFEST])
def test_a_file_that_is_not_what_the_contents_say(archive: Path, tmp_path: Path, name: str) -> None:
    forged = forge(
        archive, tmp_path / "forged.zip", lambda files: files.update({name: files[name] + b" "}), honest=False
    )
    with pytest.raises(InputError, match="is not what was exported"):
        import_campaign(forged, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_encrypted_archive_is_refused(archive: Path, tmp_path: Path) -> None:
    content = bytearray(archive.read_bytes())
    for signature, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        start = -1
        while (start := content.find(signature, start + 1)) >= 0:
            content[start + flags] |= 1
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(InputError, match="is damaged, or no archive of a campaign"):
        import_campaign(tmp_path / "x.zip", tmp_path / "again")


# --- results folders -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out_jobs.csv", "metrics.json", "out_schedule.csv"])
def test_a_result_that_was_changed_without_growing_is_not_done(campaign: Campaign, name: str) -> None:
    assert campaign.results()[0].state is State.DONE
    file = campaign.folder / "runs" / RUN / name
    content = file.read_bytes()
    digit = next(byte for byte in b"123456789" if byte in content)
    file.write_bytes(content.replace(bytes([digit]), bytes([digit ^ 1])))
    assert file.stat().st_size == len(content)
    assert campaign.results()[0].state is State.STALE
    assert campaign.finished() == []


@pytest.mark.parametrize("place", [0.01, 0.3, 0.6, 0.99])
def test_a_manifest_of_which_a_byte_was_changed_is_not_done(campaign: Campaign, place: float) -> None:
    file = campaign.folder / MANIFEST
    content = bytearray(file.read_bytes())
    byte = int(len(content) * place)
    content[byte] = ord("x") if content[byte] != ord("x") else ord("y")
    file.write_bytes(content)
    assert campaign.results()[0].state is State.STALE
    result = invoke("campaign", "show", campaign.folder, RUN)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def test_an_archive_with_a_changed_manifest_is_refused(archive: Path, tmp_path: Path) -> None:
    """Although its list of contents is right: the checksum beside the manifest is not."""

    def change(files: Files) -> None:
        files[MANIFEST] = files[MANIFEST].replace(b'"command": "', b'"command": "sudo ')

    forged = forge(archive, tmp_path / "forged.zip", change, sealed=False)
    with pytest.raises(InputError, match=f"the run {RUN} is incomplete"):
        import_campaign(forged, tmp_path / "again")


@pytest.mark.parametrize("axis", ["makespan", "run", "a\x1b[2Jb"])
def test_an_axis_that_no_plan_has_is_refused_by_name(campaign: Campaign, axis: str) -> None:
    """Not one that is called like a metric, nor one that moves the cursor."""
    file = campaign.folder / "campaign.json"
    content = json.loads(file.read_text())
    content["runs"][0]["axes"][axis] = "1"
    file.write_text(json.dumps(content))
    for command in (
        ("table",),
        ("report",),
        ("report", "--output", campaign.folder / "x.csv"),
        ("export", "x.zip"),
    ):
        result = invoke("campaign", command[0], campaign.folder, *command[1:])
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert f"no plan has an axis {axis!r}" in result.stderr.replace("\\\\", "\\")
        assert "\x1b" not in result.output


@pytest.mark.parametrize("name", ["=1+1", "@x", "+1", "-a", "a b", "a\x1b[2Jb", ""])
def test_a_choice_that_no_plan_can_make_is_refused(campaign: Campaign, name: str) -> None:
    """Cells of tables are no formulas of a spreadsheet."""
    file = campaign.folder / "campaign.json"
    content = json.loads(file.read_text())
    content["runs"][0]["axes"]["scheduler"] = name
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match="no campaign has such a run"):
        Campaign.open(campaign.folder)


@pytest.mark.parametrize("metric", ["log", "run", "=1+1", "a\x1b[2Jb"])
def test_a_metric_that_is_called_like_an_axis_is_refused_by_name(campaign: Campaign, metric: str) -> None:
    run = campaign.folder / "runs" / RUN
    metrics = json.loads((run / "metrics.json").read_text())
    give_metrics(run, json.dumps(metrics | {metric: 1.0}).encode())
    for command in (("table",), ("report", "--output", campaign.folder / "x.csv"), ("export", "x.zip")):
        result = invoke("campaign", command[0], campaign.folder, *command[1:])
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert "metrics.json: no metric can be called" in result.stderr
        assert "\x1b" not in result.output


DAMAGES = {
    "empty": b"",
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "nested": b"[" * 100_000,
    "long number": b'{"name": ' + b"9" * 5000 + b"}",
    "something else": b"[1, 2]",
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["campaign.json", "plan.toml", MANIFEST, f"failures/{RUN}.json", JOBS])
def test_a_damaged_file_in_the_folder_of_a_campaign_is_one_line_at_most(
    campaign: Campaign, name: str, damage: str
) -> None:
    (campaign.folder / name).parent.mkdir(exist_ok=True)
    (campaign.folder / name).write_bytes(DAMAGES[damage])
    page = campaign.folder / "page.html"
    for arguments in (
        ("report",),
        ("report", "--output", page),
        ("show", RUN),
        ("export", campaign.folder / "x.zip"),
    ):
        command, *rest = arguments
        result = invoke("campaign", command, campaign.folder, *rest)
        assert result.exit_code in (0, 1)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert PROGRESS.sub("", result.stderr).count("\n") <= 1


@pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
def test_metrics_that_are_none_are_one_line_though_their_manifest_knows_them(
    campaign: Campaign, content: bytes
) -> None:
    give_metrics(campaign.folder / "runs" / RUN, content)
    result = invoke("campaign", "report", campaign.folder)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "metrics.json: is not a file that batsched-py wrote" in result.stderr


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_metrics_that_could_not_be_added_up_are_refused_by_name(
    archive: Path, tmp_path: Path, value: float
) -> None:
    def enlarge(files: Files) -> None:
        place = f"runs/{RUN}/metrics.json"
        files[place] = json.dumps(json.loads(files[place]) | {"makespan": value}).encode()
        digest = hashlib.sha256(files[place]).hexdigest()

        def know(manifest: dict[str, Any]) -> None:
            (known,) = (each for each in manifest["results"] if each["path"] == "metrics.json")
            known["sha256"] = digest

        change_manifest(files, know)

    again = tmp_path / "again"
    result = invoke("campaign", "import", forge(archive, tmp_path / "forged.zip", enlarge), again)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert f"metrics.json: makespan is {value:g}, which no run gives" in result.stderr
    assert not again.exists()
