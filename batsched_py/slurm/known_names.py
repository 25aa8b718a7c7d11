"""Names that jobs use and that the files of a cluster do not have, such as old reservations and accounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.configuration import Configuration


class KnownNames:
    """The reservations, QOS and accounts of a cluster; without a listing of QOS or accounts all are known."""

    def __init__(self, configuration: Configuration) -> None:
        self._known = {"reservation": {each.name for each in configuration.reservations}}
        if configuration.qos:
            self._known["qos"] = {each.name for each in configuration.qos}
        if configuration.associations:
            self._known["account"] = {each.account for each in configuration.associations}

    def missing(self, fields: Mapping[str, Any]) -> list[str]:
        """What a job names in the fields for Slurm that is not there."""
        return [
            f"{what} {shown(fields[what])} is not there"
            for what, known in self._known.items()
            if fields.get(what) and not known.issuperset(fields[what].split(","))
        ]
