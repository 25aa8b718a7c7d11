"""Alibaba's cluster trace of 2023: tasks on GPUs that several may share, a table in CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batsched_py.workload.presets import Preset

if TYPE_CHECKING:
    import pandas as pd


class Alibaba2023(Preset):
    """A processor of the log is a CPU, shares of which are rounded up. GPUs are in thousandths."""

    name = "alibaba-2023"
    columns = (
        "submit:creation_time,start:scheduled_time,end:deletion_time,requested_processors:cpu_milli/milli,"
        "requested_memory:requested_memory,status:pod_phase"
    )
    signature = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time", "deletion_time")
    states = {"Running": 1, "Pending": 5}

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """The memory of a job is shared out among its processors, as in all logs."""
        cpus = -(-table["cpu_milli"] // 1000)
        return table.assign(
            gpus=table["num_gpu"] * table["gpu_milli"],
            requested_memory=table["memory_mib"] * 1024 / cpus.clip(lower=1),
        )
