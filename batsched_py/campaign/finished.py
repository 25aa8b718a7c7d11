"""Whether a run is finished as it is wanted now, and if not, what has changed since.

What is in a folder counts if its manifest has the identity of the run, and nothing in it was changed. A run
of the native engine does not count for another version of that engine; it does for the Python engine, which
has no version beside that of its code.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from batsched_py import native
from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.files import digest_of_code, digest_of_file, read_json
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import WINDOWS_FILE, Measurement, is_result
from batsched_py.campaign.run import Manifest, Run, has_its_seal
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment

#: How many changed settings are named.
_MOST_NAMED = 3


def is_finished(folder: Path, run: Run) -> bool:
    """Whether a folder holds all of a run as it is wanted, the manifest and all results unchanged."""
    try:
        manifest = Manifest.read(folder)
        return manifest.identity == run.identity and not _other_engine(manifest, run) and is_whole(folder)
    except InputError:
        return False


def simulator_of(command: str) -> str:
    """What identities and manifests say of a simulator: which version of it is here."""
    return BUILT_IN if command == BUILT_IN else str(find_simulator(command))


def is_whole(folder: Path) -> bool:
    """Whether a manifest and its results are as they were written."""
    return has_its_seal(folder) and all(
        is_result(result.path) and digest_of_file(folder / result.path) == result.sha256
        for result in Manifest.read(folder).results
    )


def why_stale(folder: Path, run: Run) -> str:
    """What has changed since a folder was finished in which a run is not as it is wanted."""
    try:
        manifest = Manifest.read(folder)
        if manifest.identity == run.identity and not _other_engine(manifest, run):
            return "its files were changed after it was done"
        return ", ".join(_changes(manifest, folder, run)) or "it was done with other metrics"
    except InputError as error:
        return f"its files cannot be read: {error}"


def _other_engine(manifest: Manifest, run: Run) -> bool:
    """Whether another version of the native engine made it than the one that would now."""
    ours = native.sources()
    is_wanted_now = run.experiment is not None
    return is_wanted_now and manifest.engine == "native" and "" != ours != manifest.engine_sources


def _changes(manifest: Manifest, folder: Path, run: Run) -> Iterator[str]:
    """What is not what it was; the list of runs in a campaign's folder only knows that it is another run."""
    if run.experiment is None:
        yield "it was done before the last plan"
        return
    former, wanted = manifest.experiment, run.experiment
    settings = list(_settings(_bare(former), _bare(wanted)))
    if settings:
        more = f" and {len(settings) - _MOST_NAMED} more" if len(settings) > _MOST_NAMED else ""
        yield f"another {', '.join(settings[:_MOST_NAMED])}{more}"
    digests = {file.path: file.sha256 for file in manifest.inputs}
    for before, now in zip(former.files, wanted.files, strict=False):
        if digests.get(before) != digest_of_file(now):
            yield f"{Path(now).name} has changed"
    if manifest.code != digest_of_code(wanted):
        yield f"the code has changed (it was done by version {manifest.versions.get('batsched-py', '?')})"
    elif _other_engine(manifest, run):
        yield "the native engine has changed"
    if manifest.simulator != simulator_of(run.simulator):
        yield f"it was done by {manifest.simulator}"
    if _windows(folder) != run.windows:
        yield "another window is measured"


def _windows(folder: Path) -> dict[str, Any]:
    file = folder / WINDOWS_FILE
    return dict(read_json(file, Measurement).windows) if file.is_file() else {}


def _bare(experiment: Experiment) -> Any:
    """The settings of an experiment, wherever its files lie."""
    return msgspec.to_builtins(experiment.renamed(lambda file: ""))


def _settings(before: Any, now: Any, name: str = "") -> Iterator[str]:
    """The names of the settings that differ, with both values where these are short."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _settings(before.get(key), now.get(key), key)
    elif before != now:
        yield f"{name} ({_word(before)}, now {_word(now)})"


def _word(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 30 else f"{text[:27]}..."
