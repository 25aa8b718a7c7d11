"""Lassen: jobs of a machine at Lawrence Livermore National Laboratory, a table in CSV."""

from __future__ import annotations

from batsched_py.workload.presets import Preset


class Lassen(Preset):
    """A processor of the log is a node."""

    name = "lassen"
    columns = (
        "job_number:primary_job_id,user:user_id,submit:job_submit_time,start:begin_time,end:end_time,"
        "requested_time:time_limit,allocated_processors:num_nodes,status:exit_status,queue:queue"
    )
    signature = ("primary_job_id", "num_nodes", "job_submit_time", "begin_time", "end_time", "time_limit")
