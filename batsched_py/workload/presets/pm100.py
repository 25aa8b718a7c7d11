"""PM100: jobs of Marconi100 at CINECA, a table in Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batsched_py.workload.presets import Preset

if TYPE_CHECKING:
    import pandas as pd


class PM100(Preset):
    """Limits are in minutes. Lists of nodes and of power over time are left out."""

    name = "pm100"
    columns = (
        "job_number:job_id,user:user_id,submit:submit_time,start:start_time,end:end_time,run_time:run_time,"
        "requested_time:time_limit/min,requested_processors:num_cores_req,status:job_state,queue:qos,"
        "partition:partition"
    )
    signature = ("submit_time", "eligible_time", "time_limit", "num_nodes_alloc", "num_cores_req")

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """Nodes and GPUs are called as requests on machines of nodes call them."""
        return table.rename(columns={"num_nodes_alloc": "nodes", "num_gpus_req": "gpus"})
