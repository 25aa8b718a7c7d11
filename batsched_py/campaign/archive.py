"""A campaign as one file, for an artifact evaluation: written so that whoever unpacks it can check it.

The archive holds the plan, the list of runs, every finished run with its manifest, and the table. Inputs stay
outside: the manifests have their digests, and the plan says where to get them.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from batsched_py.campaign.folders import publish, workspace
from batsched_py.campaign.manifest import MANIFEST_FILE
from batsched_py.campaign.run import RUNS
from batsched_py.campaign.store import CAMPAIGN_FILE, PLAN_FILE, TABLE_FILE, Campaign
from batsched_py.errors import InputError

CONTENTS_FILE = "contents.json"

#: Every entry has this date, so that the same results make the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20


class Contents(Struct, frozen=True):
    """What must be in an archive."""

    campaign: str
    sha256: dict[str, str]
    """Of every other file, by name."""


def export_campaign(campaign: Campaign, path: Path) -> int:
    """Write an archive; how many runs are in it."""
    runs = campaign.finished()
    if not runs:
        raise InputError(f"{campaign.folder}: no run is finished, so there is nothing to export")
    campaign.write_table(campaign.folder / TABLE_FILE)
    files = [campaign.folder / name for name in (PLAN_FILE, CAMPAIGN_FILE, TABLE_FILE)]
    for run in runs:
        files += [
            run.folder / name for name in (MANIFEST_FILE, *(result.path for result in run.manifest.results))
        ]
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            digests = {}
            for file in files:
                content = file.read_bytes()
                name = file.relative_to(campaign.folder).as_posix()
                digests[name] = hashlib.sha256(content).hexdigest()
                _add(archive, name, content)
            contents = Contents(campaign.wanted.name, digests)
            _add(archive, CONTENTS_FILE, msgspec.json.format(msgspec.json.encode(contents)))
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    return len(runs)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def import_campaign(path: Path, folder: Path) -> Campaign:
    """Check an archive and unpack it into a folder that is not there yet."""
    if folder.exists():
        raise InputError(f"{folder}: is there already; import into a new folder")
    try:
        with zipfile.ZipFile(path) as archive, workspace(folder.absolute().parent, folder.name) as work:
            contents = _contents(path, archive)
            target = work / "campaign"
            for name, digest in contents.sha256.items():
                _extract(path, archive, name, digest, target)
            campaign = Campaign.open(target)
            _check_runs(path, campaign)
            publish(target, folder.absolute())
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(f"{path}: is damaged, or no archive of a campaign: {error}") from None
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror or error}") from None
    return Campaign.open(folder)


def _contents(path: Path, archive: zipfile.ZipFile) -> Contents:
    """What the archive says that it holds, which must be what it holds."""
    try:
        contents = msgspec.json.decode(archive.read(CONTENTS_FILE), type=Contents)
    except (KeyError, msgspec.DecodeError):
        raise InputError(f"{path}: is no archive of a campaign: there is no list of contents in it") from None
    names = sorted(archive.namelist())
    if names != sorted([CONTENTS_FILE, *contents.sha256]):
        odd = sorted({*names} ^ {CONTENTS_FILE, *contents.sha256}) or names
        raise InputError(f"{path}: does not hold what its list of contents says: {odd[0]}")
    return contents


def _extract(path: Path, archive: zipfile.ZipFile, name: str, digest: str, target: Path) -> None:
    parts = PurePosixPath(name).parts
    known = len(parts) == 1 or (len(parts) == 3 and parts[0] == RUNS)
    if not known or ".." in parts or "\\" in name or PurePosixPath(name).is_absolute():
        raise InputError(f"{path}: has a file {name!r}, which no campaign has")
    file = target.joinpath(*parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    checksum = hashlib.sha256()
    with archive.open(name) as source, file.open("wb") as copy:
        while piece := source.read(_PIECE):
            checksum.update(piece)
            copy.write(piece)
    if checksum.hexdigest() != digest:
        raise InputError(f"{path}: {name} is not what was exported: its checksum is {checksum.hexdigest()}")


def _check_runs(path: Path, campaign: Campaign) -> None:
    """Every run must be whole, and every result the one that the manifest of its run tells of."""
    runs = campaign.finished()
    for name in sorted(
        {folder.name for folder in (campaign.folder / RUNS).iterdir()} - {run.name for run in runs}
    ):
        raise InputError(f"{path}: the run {name} is incomplete, or not one of this campaign")
    for run in runs:
        for result in run.manifest.results:
            digest = hashlib.sha256((run.folder / result.path).read_bytes()).hexdigest()
            if digest != result.sha256:
                raise InputError(f"{path}: {run.name}: {result.path} is not what its manifest tells of")
