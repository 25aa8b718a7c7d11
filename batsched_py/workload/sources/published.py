"""Published logs in formats of their own: Frontier's, those of the Grid Workloads Archive, and Philly's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.lines import read_lines
from batsched_py.workload.sources import Source
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.sources.table import Reading, Table
from batsched_py.workload.swf.conventions import Comments
from batsched_py.workload.swf.log import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

#: The fields of a record of Frontier's log.
FRONTIER = (*COLUMNS, "gpus", "soft_walltime", "properties")


@dataclass(frozen=True)
class _Fields(Table):
    """A table whose fields stand between blanks, in a fixed order."""

    endings: ClassVar[tuple[str, ...]] = ()
    names_are_ours: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]]
    comment: ClassVar[bytes]

    write = Source.write
    lost = Source.lost

    def recognises(self, beginning: bytes) -> bool:
        """The name of a file tells, or how many fields it has."""
        return False

    def _load(self, path: Path, rows: int | None = None) -> Iterator[tuple[pd.DataFrame, dict[str, str]]]:
        """Line by line; one with another number of fields says nothing, and is reported as such."""
        import pandas as pd

        comments, records, lines = Comments(), list[list[str | None]](), list[int]()
        number = 0
        for piece in read_lines(path):
            for line in piece.decode(errors="replace").splitlines():
                number += 1
                if line.startswith(self.comment.decode()):
                    comments.add([b";" + line.encode()[1:]])
                elif words := line.split():
                    is_whole = len(words) == len(self.fields)
                    records.append([*words] if is_whole else [None] * len(self.fields))
                    lines.append(number)
                if rows is not None and len(records) == rows:
                    yield self._table(pd.DataFrame(records, columns=self.fields), lines), comments.header()
                    records, lines = [], []
        if records or rows is None:
            yield self._table(pd.DataFrame(records, columns=self.fields), lines), comments.header()

    @abstractmethod
    def _table(self, table: pd.DataFrame, lines: list[int]) -> pd.DataFrame:
        """The records with the lines where they stand, and what follows from their fields."""


@dataclass(frozen=True)
class Frontier(_Fields):
    """Logs with three fields more than the Standard Workload Format, as that of Frontier.

    These are the GPUs of all nodes together, a soft limit, and properties like ``frontier:excl:2500x112``:
    the job had 2,500 nodes of 112 cores for itself. The field of allocated processors is not reliable, so
    sizes are those of the properties, or else the requested ones, which is told.
    """

    name = "frontier"
    fields = FRONTIER
    comment = b";"

    def _table(self, table: pd.DataFrame, lines: list[int]) -> pd.DataFrame:
        import pandas as pd

        found = table["properties"].str.extract(
            r"^[^:]*(?P<excl>:excl)?:(?P<nodes>\d{1,9})x(?P<cores>\d{1,9})$"
        )
        nodes, cores = (found[name].fillna("0").astype(np.int64) for name in ("nodes", "cores"))
        nodes = nodes.where(cores > 0, 0)
        sizes = (nodes * cores).where(nodes > 0, -1).astype(str)
        asked_for = pd.to_numeric(table["requested_processors"], errors="coerce") > 0
        sizes = sizes.where((sizes != "-1") | asked_for, table["allocated_processors"])
        return table.assign(
            line=lines, allocated_processors=sizes, nodes=nodes, exclusive=found["excl"].notna().astype(int)
        )

    def _reading(self, table: pd.DataFrame, account: Account) -> Reading:
        """Rows whose properties tell no size are told."""
        is_job = table["properties"].notna() & (table["nodes"] == 0)
        is_requested = table["allocated_processors"] == "-1"
        why = ", as its properties tell none"
        account.tell_odd(f"size as requested, in field 8{why}", (is_job & is_requested).to_numpy())
        account.tell_odd(f"size of the unreliable field 5{why}", (is_job & ~is_requested).to_numpy())
        return super()._reading(table, account)


@dataclass(frozen=True)
class Gwf(_Fields):
    """Logs of the Grid Workloads Archive."""

    name = "gwf"
    endings = (".gwf", ".gwf.gz")
    comment = b"#"
    fields = (
        *COLUMNS[:16], "origin_site", "last_run_site", "job_structure", "job_structure_parameters",
        "used_network", "used_disk", "used_resources", "requested_platform", "requested_network",
        "requested_disk", "requested_resources", "virtual_organisation", "project",
    )  # fmt: skip

    def _table(self, table: pd.DataFrame, lines: list[int]) -> pd.DataFrame:
        return table.assign(line=lines)


class _Detail(Struct):
    gpus: list[str]


class _Attempt(Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[_Detail] = []


class _PhillyJob(Struct):
    status: str
    vc: str
    jobid: str
    submitted_time: str | None
    user: str
    attempts: list[_Attempt] = []


@dataclass(frozen=True)
class Philly(Table):
    """Microsoft's trace of Philly, jobs on GPUs in JSON. A processor of the log is a GPU.

    A job may have several attempts. It runs for as long as all of them together that have a start and an end,
    on as many GPUs as the one that had most. A job without attempts never started, and nobody knows how large
    it was: it is left out.
    """

    name = "philly"
    endings: ClassVar[tuple[str, ...]] = (".philly.json",)
    names_are_ours: ClassVar[bool] = True

    write = Source.write
    lost = Source.lost

    def recognises(self, beginning: bytes) -> bool:
        """A list of jobs with attempts."""
        return beginning.lstrip().startswith(b"[") and b'"attempts"' in beginning

    def _load(self, path: Path, rows: int | None = None) -> Iterator[tuple[pd.DataFrame, dict[str, str]]]:
        import pandas as pd

        try:
            jobs = msgspec.json.decode(path.read_bytes(), type=list[_PhillyJob])
        except (OSError, msgspec.DecodeError) as error:
            raise InputError(f"{path}: not a log of Philly: {error}") from None
        table = pd.DataFrame([_record(job) for job in jobs])
        yield table.assign(line=np.arange(1, len(table) + 1)), {}

    def _reading(self, table: pd.DataFrame, account: Account) -> Reading:
        """Jobs that lost attempts are told."""
        has_lost = (table["attempts"] > table["ran"]) & (table["ran"] > 0)
        account.tell_odd("run time without the attempts that have no start or no end", has_lost.to_numpy())
        return super()._reading(table.drop(columns=["attempts", "ran"]), account)


def _record(job: _PhillyJob) -> dict[str, Any]:
    """What a job is in a log."""
    import pandas as pd

    ran = [each for each in job.attempts if each.start_time and each.end_time]
    began, ended = (
        pd.to_datetime([getattr(each, name) for each in ran], errors="coerce", format="mixed")
        for name in ("start_time", "end_time")
    )
    return {
        "id": job.jobid,
        "submit": job.submitted_time,
        "start": ran[0].start_time if ran else None,
        "run_time": (ended - began).total_seconds().to_numpy().sum() if ran else None,
        "requested_processors": max((sum(len(each.gpus) for each in one.detail) for one in ran), default=0),
        "status": job.status,
        "user": job.user,
        "partition": job.vc,
        "attempts": len(job.attempts),
        "ran": len(ran),
    }
