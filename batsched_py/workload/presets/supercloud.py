"""MIT SuperCloud: what Slurm's database says about its jobs, a table in CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from batsched_py.workload.presets import Preset

if TYPE_CHECKING:
    import pandas as pd

#: Limits from this one on mean that there is none.
_NO_LIMIT: Final = 4294967294


class SuperCloud(Preset):
    """A processor of the log is a CPU. Limits are in minutes; resources have Slurm's numbers for names."""

    name = "supercloud"
    columns = (
        "job_number:id_job,user:id_user,submit:time_submit,start:time_start,end:time_end,"
        "requested_time:timelimit/min,allocated_processors:cpus,status:state/slurm,partition:partition"
    )
    signature = ("id_job", "id_user", "time_submit", "timelimit", "tres_alloc")

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """Resource 1 is CPUs. Kinds of GPUs have numbers above 1000, and the same ones may be told twice."""
        amounts = [_amounts(text) for text in table["tres_alloc"].fillna("").astype(str)]
        return table.rename(columns={"nodes_alloc": "nodes"}).assign(
            cpus=[each.get(1, 0) for each in amounts],
            gpus=[max((each[key] for key in each if key > 1000), default=0) for each in amounts],
            timelimit=table["timelimit"].where(table["timelimit"] < _NO_LIMIT, -1 / 60),
        )


def _amounts(text: str) -> dict[int, int]:
    """What a text like ``1=40,1002=2`` says, by number."""
    pairs = (pair.partition("=") for pair in text.split(","))
    return {int(key): int(value) for key, _, value in pairs if key.isdecimal() and value.isdecimal()}
