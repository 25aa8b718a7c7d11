"""What a twin is worth: its log, simulated as it was submitted, beside what was recorded.

This is done when a log is imported, and kept in the folder of the twin. A question to the twin is answered in
the light of it: a difference that is smaller than its own error says nothing.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.calibration import Verdict, verdict
from batsched_py.api.terminal import shown as progress
from batsched_py.errors import InputError
from batsched_py.output_files import write_file
from batsched_py.slurm.comparison import Compared, compare, read_jobs
from batsched_py.slurm.prepared import simulations
from batsched_py.slurm.reading import Finding

FILE = "worth.json"

#: So often the log is simulated, with other phases of Slurm's clocks each time.
DRAWS = 3

#: So many possible causes of a difference are told.
CAUSES = 5

_JOBS = re.compile(r"\(([0-9]+) x\)")


class Worth(Struct, frozen=True, kw_only=True):
    """A recorded log beside its simulations; waits are those of all draws together."""

    draws: int
    only_recorded: int
    """Jobs that ran in the recording and not in the simulation."""
    all: Compared
    groups: dict[str, dict[str, Compared]]
    """By class, partition, account, QOS and user."""
    verdict: Verdict
    causes: list[str]
    """What is not modelled, that which touches most jobs first."""

    def of(self, grouping: str | None, name: str) -> Compared | None:
        """What is known of a group; of all jobs if there is no grouping."""
        return self.all if grouping is None else self.groups.get(grouping, {}).get(name)


def worth_of(
    folder: Path, log: Path, zone: str, unmodelled: Sequence[Finding], early: Collection[str] = ()
) -> Worth:
    """Simulate the log of a twin, compare all but ``early`` jobs, and keep the result in the folder."""
    recorded, drawn = read_jobs(log, zone), list[pd.DataFrame]()
    recorded = recorded[~recorded.index.isin(list(early))]
    with TemporaryDirectory(prefix="worth-") as room, progress("simulations", lambda: (len(drawn), DRAWS)):
        for table in simulations(folder, Path(room), DRAWS, [recorded]):
            drawn.append(table)
    found = compare([_together([recorded] * DRAWS), _together(drawn)], (log.name, folder.name))
    of_all = _of_one(found.all)
    worth = Worth(
        draws=DRAWS,
        only_recorded=found.only_recorded // DRAWS,
        all=of_all,
        groups={
            name: {one: _of_one(of) for one, of in group.items()} for name, group in found.groups.items()
        },
        verdict=verdict(of_all.waits),
        causes=_causes(unmodelled),
    )
    write_file(folder / FILE, msgspec.json.format(msgspec.json.encode(worth)) + b"\n")
    return worth


def _together(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The jobs of several draws, told apart by the numbers of the draws."""
    return pd.concat([table.set_axis(table.index + f"/{place}") for place, table in enumerate(tables)])


def _of_one(found: Compared) -> Compared:
    """The same with the number of jobs in one draw."""
    return replace(found, waits=replace(found.waits, jobs=-(-found.waits.jobs // DRAWS)))


def _causes(unmodelled: Sequence[Finding]) -> list[str]:
    def jobs(finding: Finding) -> int:
        counted = _JOBS.search(finding.what)
        return int(counted[1]) if counted else 0

    return [str(each) for each in sorted(unmodelled, key=lambda each: -jobs(each))[:CAUSES]]


def read_worth(folder: Path) -> Worth | None:
    """What the twin in a folder is worth, if that was found out when it was imported."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Worth)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise InputError(f"{folder / FILE}: cannot be read: {error}; import the twin again") from None
