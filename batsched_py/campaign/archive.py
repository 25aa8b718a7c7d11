"""A campaign as one file, for an artifact evaluation: written so that it can be checked when it is unpacked.

The archive holds the plan, the files that it names, the list of runs, every finished run with its manifest,
the table, and a description for programs that collect research data. Only logs stay outside: the manifests
have their digests, and the plan says where to get them.

Those who unpack an archive need not trust those who packed it. Only the files of a campaign come out of it,
to where a campaign has them, and no more of them than a campaign needs; nothing is executed, and the folder
remembers that others made it.
"""

import hashlib
import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

import msgspec
from msgspec import Struct

from batsched_py.campaign import files
from batsched_py.campaign.crate import CRATE_FILE, crate_of
from batsched_py.campaign.plan import CAMPAIGN_FILE, PLAN_FILE, is_name
from batsched_py.campaign.prepare import INPUTS
from batsched_py.campaign.results import is_result
from batsched_py.campaign.run import MANIFEST_FILE, RUNS, SEAL_FILE
from batsched_py.campaign.store import TABLE_FILE, Campaign
from batsched_py.errors import InputError
from batsched_py.output_files import write_file, writing
from batsched_py.trust import IMPORTED_FILE

CONTENTS_FILE = "contents.json"

#: Every entry has this date, so that the same results make the same archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20

#: What an archive may hold: so many files, each so large and all together so large when they are unpacked.
MOST_FILES = 100_000
LARGEST_FILE = 4 << 30
LARGEST_WHOLE = 64 << 30

#: The list of so many files has no more bytes than this, which take ten times as much memory.
LARGEST_LIST = 16 << 20

#: How many times larger than in the archive a file may be. Tables of jobs shrink to a tenth; what shrinks to
#: a thousandth was made to fill disks.
HIGHEST_RATIO = 200


class Contents(Struct, frozen=True):
    """What must be in an archive."""

    campaign: str
    sha256: dict[str, str]
    """Of every other file, by name."""


def export_campaign(campaign: Campaign, path: Path) -> int:
    """Write an archive; how many runs are in it."""
    runs = campaign.finished()
    if not runs:
        raise campaign.nothing_finished("export")
    campaign.write_table(campaign.folder / TABLE_FILE)
    packed = [campaign.folder / name for name in (PLAN_FILE, CAMPAIGN_FILE, TABLE_FILE)]
    for kept in campaign.wanted.inputs:
        if not kept.is_kept(campaign.folder):
            raise InputError(f"{campaign.folder}: {INPUTS}/{kept.copy} was changed; run the campaign again")
        packed.append(campaign.folder / INPUTS / kept.copy)
    for run in runs:
        packed += [run.folder / name for name in run.manifest.files if (run.folder / name).exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            digests = {}
            for each in packed:
                name = each.relative_to(campaign.folder).as_posix()
                if not each.resolve().is_relative_to(campaign.folder.resolve()):
                    raise InputError(f"{each}: lies outside the campaign; only what is in it is exported")
                content = each.read_bytes()
                digests[name] = hashlib.sha256(content).hexdigest()
                _add(archive, name, content)
            crate = crate_of(campaign, runs, digests, CONTENTS_FILE)
            digests[CRATE_FILE] = hashlib.sha256(crate).hexdigest()
            _add(archive, CRATE_FILE, crate)
            contents = Contents(campaign.wanted.name, digests)
            _add(archive, CONTENTS_FILE, msgspec.json.format(msgspec.json.encode(contents)))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    return len(runs)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)


def import_campaign(path: Path, folder: Path, trust: bool = False) -> Campaign:
    """Check an archive and unpack it into a folder that is not there yet.

    With ``trust``, code in it may be executed later.
    """
    if os.path.exists(folder):
        raise InputError(f"{folder}: is there already; import into a new folder")
    try:
        with (
            _Bounded(path) as file,
            zipfile.ZipFile(file) as archive,
            files.workspace(folder.absolute().parent, folder.name) as work,
        ):
            _check_sizes(path, archive)
            contents = _contents(path, archive)
            target = work / "campaign"
            for name, digest in contents.sha256.items():
                _extract(path, archive, name, digest, target)
            (target / CRATE_FILE).unlink(missing_ok=True)  # it describes the archive, not what becomes of it
            campaign = Campaign.open(target)
            _check_inputs(path, campaign)
            _check_runs(path, campaign)
            origin = {"archive": path.name, "sha256": files.digest_of_file(path), "trusted": trust}
            write_file(target / IMPORTED_FILE, msgspec.json.format(msgspec.json.encode(origin)))
            files.publish(target, folder.absolute())
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError) as error:
        raise InputError(f"{path}: is damaged, or no archive of a campaign: {error}") from None
    except OSError as error:
        raise InputError(f"{error.filename or path}: {error.strerror or error}") from None
    return Campaign.open(folder)


class _Bounded(io.FileIO):
    """A file of which little is read at once, even if its own list of contents claims large parts."""

    def read(self, size: int | None = -1) -> bytes:
        """Read so many bytes, or all that are left."""
        if size is None or size < 0:
            size = max(os.fstat(self.fileno()).st_size - self.tell(), 0)
        if size > LARGEST_LIST:
            raise InputError(
                f"{self.name}: lists more files than the {MOST_FILES} that are the most, or compresses none"
            )
        return super().read(size)


def _check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Check how the archive says that files are stored, and their sizes; no more is unpacked later.

    Only deflate unpacks piece by piece: of other methods, a piece may be as large as all memory.
    """
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise InputError(f"{path}: holds {len(entries)} files; {MOST_FILES} are the most")
    for entry in entries:
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{path}: {entry.filename!r} is compressed by another method than deflate")
        largest = files.LARGEST_JSON if entry.filename.endswith(".json") else LARGEST_FILE
        if entry.file_size > largest:
            raise InputError(
                f"{path}: {entry.filename!r} has {entry.file_size} bytes; {largest} are the most"
            )
        if entry.file_size > _PIECE + HIGHEST_RATIO * entry.compress_size:
            raise InputError(
                f"{path}: {entry.filename!r} is more than {HIGHEST_RATIO} times as large as in the archive; "
                "no campaign's is"
            )
    if sum(entry.file_size for entry in entries) > LARGEST_WHOLE:
        raise InputError(f"{path}: holds more than the {LARGEST_WHOLE >> 30} GiB that are the most")


def _contents(path: Path, archive: zipfile.ZipFile) -> Contents:
    """The list of contents, which must match the files in the archive."""
    try:
        contents = files.decode_json(archive.read(CONTENTS_FILE), Contents)
    except (KeyError, InputError):
        raise InputError(f"{path}: is no archive of a campaign: there is no list of contents in it") from None
    names = sorted(archive.namelist())
    if names != sorted([CONTENTS_FILE, *contents.sha256]):
        odd = sorted({*names} ^ {CONTENTS_FILE, *contents.sha256}) or names
        raise InputError(f"{path}: does not hold what its list of contents says: {odd[0]}")
    return contents


def _extract(path: Path, archive: zipfile.ZipFile, name: str, digest: str, target: Path) -> None:
    match name.split("/"):
        case [part]:
            known = part in (PLAN_FILE, CAMPAIGN_FILE, TABLE_FILE, CRATE_FILE)
        case [folder, part] if folder == INPUTS:
            known = is_name(part)
        case [folder, run, part] if folder == RUNS:
            known = is_name(run) and (part in (MANIFEST_FILE, SEAL_FILE) or is_result(part))
        case _:
            known = False
    if not known:
        raise InputError(f"{path}: has a file {name!r}, which no campaign has")
    file = target / name
    file.parent.mkdir(parents=True, exist_ok=True)
    checksum = hashlib.sha256()
    with archive.open(name) as source, file.open("wb") as copy:
        while piece := source.read(_PIECE):
            checksum.update(piece)
            copy.write(piece)
    if checksum.hexdigest() != digest:
        raise InputError(f"{path}: {name} is not what was exported: its checksum is {checksum.hexdigest()}")


def _check_inputs(path: Path, campaign: Campaign) -> None:
    """The inputs must be those that the list of the campaign tells of, and nothing else."""
    listed = campaign.wanted.inputs
    for each in listed:
        if not each.is_kept(campaign.folder):
            raise InputError(f"{path}: {INPUTS}/{each.copy} is missing, or not what the list of runs says")
    found = {file.name for file in (campaign.folder / INPUTS).glob("*")}
    for name in sorted(found - {each.copy for each in listed}):
        raise InputError(f"{path}: the list of runs does not tell of {INPUTS}/{name}")


def _check_runs(path: Path, campaign: Campaign) -> None:
    """Every run must be complete, with the results that its manifest lists and nothing else."""
    runs = {run.name: run for run in campaign.finished()}
    for folder in sorted((campaign.folder / RUNS).iterdir()):
        if folder.name not in runs:
            raise InputError(
                f"{path}: the run {folder.name} is incomplete, not what its manifest tells of, or not one of "
                "this campaign"
            )
        told = runs[folder.name].manifest.files
        for file in sorted(folder.iterdir()):
            if file.name not in told:
                raise InputError(f"{path}: {folder.name}: its manifest does not tell of {file.name}")
