"""Jobs of the Argonne Leadership Computing Facility: Mira, Theta and others, tables in CSV."""

from __future__ import annotations

from batsched_py.workload.presets import Preset


class ALCF(Preset):
    """A processor of the log is a node."""

    name = "alcf"
    columns = (
        "user:USERNAME_GENID,submit:QUEUED_TIMESTAMP,start:START_TIMESTAMP,end:END_TIMESTAMP,"
        "run_time:RUNTIME_SECONDS,requested_time:WALLTIME_SECONDS,requested_processors:NODES_REQUESTED,"
        "allocated_processors:NODES_USED,queue:QUEUE_NAME,group:COBALT_PROJECT_NAME_GENID,status:EXIT_STATUS"
    )
    signature = ("QUEUED_TIMESTAMP", "START_TIMESTAMP", "END_TIMESTAMP", "NODES_USED", "WALLTIME_SECONDS")
