"""What was found in files of Slurm that is wrong, or that the twin does not do, each with its place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.shown import harmless
from batsched_py.slurm.values import NotModelled


class Finding(Struct, frozen=True, order=True):
    """Something at a place."""

    where: str
    what: str

    def __str__(self) -> str:
        return harmless(f"{self.where}: {self.what}")


class Mistakes(InputError):
    """Files with mistakes; :attr:`found` has one for each."""

    def __init__(self, found: Iterable[Finding]) -> None:
        self.found = list(found)
        others = f" (and {len(self.found) - 1} more mistakes)" if len(self.found) > 1 else ""
        super().__init__(f"{self.found[0]}{others}")


class Findings(Struct):
    """All that was found."""

    mistakes: list[Finding] = field(default_factory=list)
    """With any of these nothing is imported."""
    unmodelled: list[Finding] = field(default_factory=list)
    """What may shape the real schedule, and does not shape the simulated one."""
    without_effect: list[Finding] = field(default_factory=list)
    """What shapes no schedule: ports, names of files and the like."""

    def mistake(self, where: str, what: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Finding(where, what))

    def left_out(self, where: str, what: str) -> None:
        """Note what is not modelled."""
        self.unmodelled.append(Finding(where, what))

    def of_no_effect(self, where: str, what: str) -> None:
        """Note what shapes no schedule."""
        self.without_effect.append(Finding(where, what))

    def refused(self, where: str, what: str, error: ValueError) -> Any:
        """Note a value that cannot be taken: as not modelled if Slurm knows it, else as a mistake.

        Returns what of it can be taken, if anything.
        """
        if isinstance(error, NotModelled):
            self.left_out(where, f"{what}: {error}")
            return error.rest
        self.mistake(where, f"{what}: {error}")
        return None

    def report(self) -> str:
        """What is not modelled, and what need not be."""
        titles = "What may shape the real schedule and is not modelled", "What shapes no schedule"
        parts = [
            "".join([f"{title}: {len(found)}\n", *(f"  {finding}\n" for finding in found)])
            for title, found in zip(titles, (self.unmodelled, self.without_effect), strict=True)
        ]
        return "\n".join(parts)

    def check(self) -> None:
        """Raise all mistakes, if there are any."""
        if self.mistakes:
            raise Mistakes(self.mistakes)


def read_text(path: Path, findings: Findings) -> str:
    """The text in a file; nothing if it cannot be read."""
    try:
        return read_input(path).decode("utf-8-sig")
    except OSError as error:
        findings.mistake(str(path), f"cannot be read ({error.strerror})")
    except UnicodeDecodeError as error:
        findings.mistake(f"{path}, byte {error.start}", "is no text in UTF-8")
    return ""
