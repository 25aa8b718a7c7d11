"""The files that a plan names besides its logs: code, platforms, events, fitted models.

A campaign keeps a copy of each beside its plan, in the folder ``inputs``. So the plan in the folder of a
campaign finds them wherever that folder is, and an archive of the campaign has all that its plan needs but
the logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os.path import isfile
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.campaign.digest import digest_of_file
from batsched_py.campaign.folders import is_name, read_json, write_file
from batsched_py.campaign.plan import CAMPAIGN_FILE, PLAN_FILE
from batsched_py.errors import InputError
from batsched_py.trust import IMPORTED_FILE

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
