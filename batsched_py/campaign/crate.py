"""What a campaign's archive is, for programs that collect research data: a Workflow Run RO-Crate.

The plan is the workflow, each finished run is an action that executed it on its inputs. Logs are not in the
archive, so they are named with their checksums. https://www.researchobject.org/workflow-run-crate
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from batsched_py.campaign.plan import CAMPAIGN_FILE, PLAN_FILE
from batsched_py.campaign.prepare import INPUTS
from batsched_py.campaign.run import RUNS, Manifest, RunResult
from batsched_py.campaign.store import TABLE_FILE, Campaign

CRATE_FILE = "ro-crate-metadata.json"

Entity = dict[str, Any]

_RO_CRATE = "https://w3id.org/ro/crate/1.1"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
_NAMES = {
    PLAN_FILE: "the plan of the campaign",
    CAMPAIGN_FILE: "the runs that the plan asks for, and the files that it names",
    TABLE_FILE: "the metrics of all runs",
}
_JSON = "application/json"
_FORMATS = {".toml": "application/toml", ".json": _JSON, ".csv": "text/csv", ".py": "text/x-python"}


def crate_of(
    campaign: Campaign, runs: Sequence[RunResult], digests: Mapping[str, str], contents: str
) -> bytes:
    """The description of an archive, whose files have the digests; ``contents`` is the list of them all."""
    inputs = {digest: name for name, digest in digests.items() if name.startswith(f"{INPUTS}/")}
    actions = [_action(run, inputs) for run in runs]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": campaign.wanted.title or campaign.wanted.name,
        "description": f"A campaign of {len(runs)} simulations: its plan, inputs and results.",
        "datePublished": max(action["endTime"] for action in actions),
        "license": "not stated in the plan; ask those who made the campaign",
        "conformsTo": _references(_PROFILES),
        "mainEntity": {"@id": PLAN_FILE},
        "hasPart": _references([*digests, contents]),
        "mentions": _references(action["@id"] for action in actions),
    }
    listed = {"@id": contents, "@type": "File", "name": "the checksums of all files", "encodingFormat": _JSON}
    files = (_file(name, digest) for name, digest in digests.items())
    graph = [_descriptor(), root, *_contextual(), *files, listed, *_outside(runs, inputs), *actions]
    context = [f"{_RO_CRATE}/context", {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}]
    return msgspec.json.format(msgspec.json.encode({"@context": context, "@graph": graph}))


def _references(names: Iterable[str]) -> Any:
    """What refers to entities; a single one stands without a list."""
    found = [{"@id": name} for name in names]
    return found[0] if len(found) == 1 else found


def _descriptor() -> Entity:
    conforms = [_RO_CRATE, "https://w3id.org/workflowhub/workflow-ro-crate/1.0"]
    return {
        "@id": CRATE_FILE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": _references(conforms),
    }


def _contextual() -> Iterator[Entity]:
    """What files and actions refer to."""
    for profile, (name, version) in _PROFILES.items():
        yield {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}
    yield {
        "@id": "#plan-of-batsched-py",
        "@type": "ComputerLanguage",
        "name": "plans of batsched_py, in TOML",
        "url": {"@id": "https://toml.io"},
    }
    yield {"@id": "https://toml.io", "@type": "WebPage", "name": "TOML"}


def _file(name: str, digest: str) -> Entity:
    file: Entity = {
        "@id": name,
        "@type": "File",
        "name": _NAMES.get(name, name),
        "encodingFormat": _FORMATS.get(name[name.rfind(".") :], "text/plain"),
        "sha256": digest,
    }
    if name == PLAN_FILE:
        file |= {
            "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
            "conformsTo": {"@id": _BIOSCHEMAS},
            "programmingLanguage": {"@id": "#plan-of-batsched-py"},
            "version": digest[:12],
        }
    return file


def _outside(runs: Sequence[RunResult], inputs: Mapping[str, str]) -> Iterator[Entity]:
    """Files that runs read and that are not in the archive: the logs."""
    told = set()
    for run in runs:
        for file in run.manifest.inputs:
            if file.sha256 not in inputs and file.sha256 not in told:
                told.add(file.sha256)
                name = file.path.rpartition("/")[2]
                yield {
                    "@id": f"#sha256-{file.sha256}",
                    "@type": "CreativeWork",
                    "name": name,
                    "sha256": file.sha256,
                }


def _action(run: RunResult, inputs: Mapping[str, str]) -> Entity:
    """The execution that made a run."""
    manifest: Manifest = run.manifest
    started = datetime.fromisoformat(manifest.started)
    ended = started + timedelta(seconds=sum(manifest.seconds.values()))
    used = dict.fromkeys(inputs.get(file.sha256, f"#sha256-{file.sha256}") for file in manifest.inputs)
    versions = ", ".join(f"{name} {version}" for name, version in manifest.versions.items())
    return {
        "@id": f"#run-{run.name}",
        "@type": "CreateAction",
        "name": run.name,
        "description": f"{manifest.command} (simulator: {manifest.simulator}; {versions})",
        "instrument": {"@id": PLAN_FILE},
        "object": _references(used),
        "result": _references(
            f"{RUNS}/{run.name}/{name}" for name in manifest.files if (run.folder / name).exists()
        ),
        "startTime": started.isoformat(timespec="seconds"),
        "endTime": ended.isoformat(timespec="seconds"),
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
