"""F-DATA: jobs of Fugaku at RIKEN, tables in Parquet."""

from __future__ import annotations

from batsched_py.workload.presets import Preset


class FData(Preset):
    """A processor of the log is a node, as Fugaku gives out nodes. The list ``embedding`` is left out."""

    name = "f-data"
    columns = (
        "job_number:jid,user:usr,executable:jnam,submit:adt,start:sdt,end:edt,run_time:duration,"
        "requested_time:elpl,requested_processors:nnumr,allocated_processors:nnuma,status:exit state"
    )
    signature = ("usr", "nnumr", "nnuma", "adt", "sdt", "edt", "elpl")
    zone = "Asia/Tokyo"
