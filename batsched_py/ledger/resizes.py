"""Running jobs that go on with other hosts, and how that is written down."""

from __future__ import annotations

from msgspec import Struct

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job

#: How a file of resizes begins.
HEADER = "job_id,time,hosts_before,hosts_after\n"


class ResizedJob(Struct, frozen=True, gc=False, eq=False):
    """A malleable job that goes on with other hosts."""

    job: Job
    before: HostSet
    hosts: HostSet
    time: float
