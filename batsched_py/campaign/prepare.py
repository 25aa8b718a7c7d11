"""Getting the files that a plan names: logs that are downloaded or made by recipes, and all others.

Of the others (code, platforms, events, fitted models) a campaign keeps a copy beside its plan, in the folder
``inputs``. So the plan in the folder of a campaign finds them wherever that folder is, and an archive of the
campaign has all that its plan needs but the logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.campaign.files import digest_of_file, read_json
from batsched_py.campaign.plan import CAMPAIGN_FILE, PLAN_FILE, MissingLog, is_name
from batsched_py.errors import InputError
from batsched_py.experiment import Workloads
from batsched_py.output_files import write_file, writing
from batsched_py.settings import pairs_in
from batsched_py.trust import IMPORTED_FILE, code_named_in

if TYPE_CHECKING:
    from batsched_py.campaign.plan_file import Plan
    from batsched_py.workload.swf.log import SwfLog


INPUTS = "inputs"


class PlanInput(Struct, frozen=True, omit_defaults=True):
    """A file that a plan names."""

    name: str
    """As the plan writes it."""
    copy: str
    """What it is called in the folder ``inputs``."""
    sha256: str
    source: str = ""
    """Where the copy is taken from; the list of a campaign does not have it."""

    def is_kept(self, folder: Path) -> bool:
        """Whether the folder of a campaign has it, with the right content."""
        file = folder / INPUTS / self.copy
        return is_name(self.copy) and isfile(file) and digest_of_file(file) == self.sha256

    def keep(self, folder: Path) -> None:
        """Copy it into the folder of a campaign, unless it is there."""
        if not self.source or self.is_kept(folder):
            return
        try:
            content = Path(self.source).read_bytes()
        except OSError as error:
            raise InputError(f"{self.source}: cannot be read: {error.strerror}") from None
        write_file(folder / INPUTS / self.copy, content)

    def listed(self) -> PlanInput:
        """What the list in a campaign's folder has of it."""
        return replace(self, source="")


def inputs_of(found: Mapping[str, Path]) -> list[PlanInput]:
    """The inputs of a plan, by the names that it gives them; copies of the same name are told apart."""
    inputs: list[PlanInput] = []
    taken: set[str] = set()
    for name, path in sorted(found.items()):
        copy, number = path.name, 2
        while copy in taken:
            copy, number = f"{number}-{path.name}", number + 1
        taken.add(copy)
        inputs.append(PlanInput(name, copy, digest_of_file(path), str(path)))
    return inputs


class _Listed(Struct):
    """What the list of a campaign says about the inputs of its plan."""

    inputs: list[PlanInput] = []


class InputFiles:
    """Finds the inputs of a plan: beside it, or in the folder of a campaign among the copies.

    Of a campaign that was imported, the copies come first: what else is called so here is another file.
    """

    def __init__(self, plan: Path) -> None:
        self._folder = plan.resolve().parent
        self._copies: dict[str, Path] = {}
        if plan.name == PLAN_FILE:
            with suppress(InputError):
                listed = read_json(self._folder / CAMPAIGN_FILE, _Listed).inputs
                self._copies = {
                    each.name: self._folder / INPUTS / each.copy for each in listed if is_name(each.copy)
                }
        self.found: dict[str, Path] = {}
        """All that were asked for, by the names that the plan gives them."""

    def find(self, name: str, others: Sequence[Path] = ()) -> Path:
        """The file that the plan calls ``name``, where it is or should be; ``others`` are places to look."""
        places = [self._folder / name, *others]
        if name in self._copies:
            first = 0 if (self._folder / IMPORTED_FILE).exists() else len(places)
            places.insert(first, self._copies[name])
        self.found[name] = next(filter(isfile, places), self._folder / name).resolve()
        return self.found[name]


def make(path: Path, recipe: Mapping[str, Any]) -> None:
    """Write the log of a recipe, or the sessions; it gets its name only when it is complete."""
    if "workloads" in recipe:
        return _make_sessions(path, recipe)
    from batsched_py.workload.recipe import log_from_recipe
    from batsched_py.workload.swf.log import write_swf

    if "file" in recipe:
        file = Path(recipe["file"])
        options = tuple(recipe.get("input_options", ()))
        recipe = {**recipe, "file": _log(file, recipe.get("kind"), digest_of_file(file), options)}
    log = log_from_recipe(recipe)
    if "request" in log.more:
        raise InputError(
            f"{path.name}: what its jobs ask of nodes would be lost in the log that a plan makes; write it "
            "to a FILE.json by `batsched-py generate` or `batsched-py change`, and name that file in the plan"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_swf(path, log)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def _make_sessions(path: Path, recipe: Mapping[str, Any]) -> None:
    """Write the sessions of the users of a log, as a rule cuts them."""
    from batsched_py.experiment.build import read_workloads
    from batsched_py.workload.session_files import write_all_sessions
    from batsched_py.workload.sessions import cut_workload, session_rule

    rule = session_rule(recipe["sessions"])
    (workload,) = read_workloads(msgspec.convert(recipe["workloads"], Workloads))
    graphs = {
        user: sessions.graph(reduced=recipe["edges"] == "reduced")
        for user, sessions in cut_workload(workload, rule).items()
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_all_sessions(path, graphs, workload, rule)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


@lru_cache(maxsize=256)
def parts_of(
    file: Path, digest: str, every: str, options: tuple[str, ...] = ()
) -> tuple[list[tuple[float, float]], str]:
    """When each part of a log, such as a week, begins and ends; and which jobs are in none."""
    from batsched_py.workload.changes.selecting import bounds_of_parts, outside_of_parts

    log = _log(file, None, digest, options)
    return bounds_of_parts(log, every), outside_of_parts(log, every)


@lru_cache(maxsize=2)
def _log(file: Path, kind: str | None, digest: str, options: tuple[str, ...]) -> SwfLog:
    """A log of which several others are made."""
    from batsched_py.workload.sources import read_log

    return read_log(file, kind, pairs_in(options, "input_options:"))


#: How long a server may be silent, in seconds.
PATIENCE = 30.0

#: The most that is downloaded for a log, in bytes; the largest of the archives have less than one of them.
LARGEST_LOG = 4 << 30

_PIECE = 1 << 20

#: A context that gives a function to report how many logs are made, and of how many.
Making = Callable[[], AbstractContextManager[Callable[[int, int], None]]]


def prepared(read: Callable[[], Plan], may_fetch: Callable[[MissingLog], bool], making: Making) -> Plan:
    """A plan of which all logs are here; it is read again when some were not.

    What the parts of a log are is known when it is here, so others may then be wanted.
    """
    plan = read()
    while plan.missing or plan.unmade:
        for log in plan.missing:
            if not may_fetch(log):
                raise InputError(
                    f"{log.path.name} is not here; say where it is by --logs DIR, or download it by --yes"
                )
            fetch(log)
        with making() as moved, code_named_in(plan.file, plan.trusted):
            for number, unmade in enumerate(plan.unmade):
                moved(number, len(plan.unmade))
                make(unmade.path, unmade.recipe)
        plan = read()
    return plan


def fetch(log: MissingLog) -> None:
    """Download a log; it gets its name only if its checksum is the one that the plan gives."""
    if not log.url.startswith(("https://", "file:///")):
        raise InputError(f"{log.url}: logs are downloaded by https:// only, or read from a file:///FILE")
    checksum = hashlib.sha256()
    try:
        log.path.parent.mkdir(parents=True, exist_ok=True)
        with (
            build_opener(_OnlyHttps).open(log.url, timeout=PATIENCE) as answer,
            writing(log.path) as file,
        ):
            while piece := answer.read(_PIECE):
                checksum.update(piece)
                file.write(piece)
                if file.tell() > LARGEST_LOG:
                    raise InputError(f"{log.url}: is larger than {LARGEST_LOG >> 30} GiB; get it yourself")
            if log.sha256 not in (None, checksum.hexdigest()):
                raise InputError(
                    f"{log.url}: is not the log that the plan wants: its checksum is {checksum.hexdigest()}"
                )
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise InputError(f"{log.url}: cannot be downloaded to {log.path.parent}: {reason}") from None


class _OnlyHttps(HTTPRedirectHandler):
    """A server that sends one elsewhere may not send one to where anybody can listen or answer."""

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Go where one is sent."""
        if not newurl.startswith("https://"):
            raise InputError(f"{req.full_url}: leads to {newurl}; logs are downloaded by https:// only")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
