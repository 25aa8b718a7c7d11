"""Acme and Helios: jobs of GPU clusters at Shanghai AI Laboratory and SenseTime, tables in CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batsched_py.workload.presets import Preset

if TYPE_CHECKING:
    import pandas as pd


class Acme(Preset):
    """A processor of the log is a CPU; GPUs count on machines of nodes. ``queue`` is the wait in seconds."""

    name = "acme"
    columns = (
        "job_number:job_id,user:user,submit:submit_time,start:start_time,end:end_time,run_time:duration,"
        "requested_processors:cpu_num,status:state,wait:queue,partition:vc"
    )
    signature = ("node_num", "gpu_num", "cpu_num", "submit_time", "duration", "queue")

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """Nodes and GPUs are called as requests on machines of nodes call them."""
        return table.rename(columns={"node_num": "nodes", "gpu_num": "gpus"})
