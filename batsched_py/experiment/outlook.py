"""What an experiment says of what comes from outside and is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batsched_py.decision.process import Outlook
from batsched_py.errors import InputError
from batsched_py.experiment.value import OutsideFiles
from batsched_py.outside.curve import CURVES, NOTHING_KNOWN, Known, read_curve
from batsched_py.protocol.jobs import Host


def outlook_of(files: OutsideFiles) -> Outlook | None:
    """What tells it to a machine, if anything is said; the files are read when the hosts are known."""
    if files.closures is None and not any(_curve_files(files).values()):
        if files.outside_period is not None:
            raise InputError(
                "--outside-period is for --price, --carbon, --temperature and --power-cap; give one of them"
            )
        return None
    known = read_curves(files)

    def outlook(hosts: Sequence[Host]) -> Known:
        if files.closures is None:
            return known
        from msgspec.structs import replace

        from batsched_py.outside.closures import read_closures

        return replace(known, closures=tuple(read_closures(files.closures, hosts).all))

    return outlook


def read_curves(files: OutsideFiles) -> Known:
    """What the files say of prices, carbon, temperature and the power that may be drawn."""
    curves: dict[str, Any] = {
        name: read_curve(file, files.outside_period)
        for name, file in _curve_files(files).items()
        if file is not None
    }
    return Known(**curves) if curves else NOTHING_KNOWN


def _curve_files(files: OutsideFiles) -> dict[str, str | None]:
    return {name: getattr(files, name) for name in CURVES}
