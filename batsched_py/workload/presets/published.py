"""Presets of published tables: GPU clusters, Fugaku, Marconi100, SuperCloud, machines of two laboratories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from batsched_py.workload.presets import Preset

if TYPE_CHECKING:
    import pandas as pd

#: SuperCloud: limits from this one on mean that there is none.
_NO_LIMIT: Final = 4294967294


class Acme(Preset):
    """Acme and Helios: jobs of GPU clusters at Shanghai AI Laboratory and SenseTime, tables in CSV.

    A processor of the log is a CPU; GPUs count on machines of nodes. ``queue`` is the wait in seconds.
    """

    name = "acme"
    columns = (
        "job_number:job_id,user:user,submit:submit_time,start:start_time,end:end_time,run_time:duration,"
        "requested_processors:cpu_num,status:state,wait:queue,partition:vc"
    )
    signature = ("node_num", "gpu_num", "cpu_num", "submit_time", "duration", "queue")

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """Nodes and GPUs are called as requests on machines of nodes call them."""
        return table.rename(columns={"node_num": "nodes", "gpu_num": "gpus"})


class ALCF(Preset):
    """Jobs of the Argonne Leadership Computing Facility: Mira, Theta and others, tables in CSV.

    A processor of the log is a node.
    """

    name = "alcf"
    columns = (
        "user:USERNAME_GENID,submit:QUEUED_TIMESTAMP,start:START_TIMESTAMP,end:END_TIMESTAMP,"
        "run_time:RUNTIME_SECONDS,requested_time:WALLTIME_SECONDS,requested_processors:NODES_REQUESTED,"
        "allocated_processors:NODES_USED,queue:QUEUE_NAME,group:COBALT_PROJECT_NAME_GENID,status:EXIT_STATUS"
    )
    signature = ("QUEUED_TIMESTAMP", "START_TIMESTAMP", "END_TIMESTAMP", "NODES_USED", "WALLTIME_SECONDS")


class Alibaba2023(Preset):
    """Alibaba's cluster trace of 2023: tasks on GPUs that several may share, a table in CSV.

    A processor of the log is a CPU, shares of which are rounded up. GPUs are in thousandths.
    """

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


class FData(Preset):
    """F-DATA: jobs of Fugaku at RIKEN, tables in Parquet.

    A processor of the log is a node, as Fugaku gives out nodes. The list ``embedding`` is left out.
    """

    name = "f-data"
    columns = (
        "job_number:jid,user:usr,executable:jnam,submit:adt,start:sdt,end:edt,run_time:duration,"
        "requested_time:elpl,requested_processors:nnumr,allocated_processors:nnuma,status:exit state"
    )
    signature = ("usr", "nnumr", "nnuma", "adt", "sdt", "edt", "elpl")
    zone = "Asia/Tokyo"


class Lassen(Preset):
    """Lassen: jobs of a machine at Lawrence Livermore National Laboratory, a table in CSV.

    A processor of the log is a node.
    """

    name = "lassen"
    columns = (
        "job_number:primary_job_id,user:user_id,submit:job_submit_time,start:begin_time,end:end_time,"
        "requested_time:time_limit,allocated_processors:num_nodes,status:exit_status,queue:queue"
    )
    signature = ("primary_job_id", "num_nodes", "job_submit_time", "begin_time", "end_time", "time_limit")


class PM100(Preset):
    """PM100: jobs of Marconi100 at CINECA, a table in Parquet.

    Limits are in minutes. Lists of nodes and of power over time are left out.
    """

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


class SuperCloud(Preset):
    """MIT SuperCloud: what Slurm's database says about its jobs, a table in CSV.

    A processor of the log is a CPU. Limits are in minutes; resources have Slurm's numbers for names.
    """

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
