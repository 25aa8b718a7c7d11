"""Attributes of your own for the jobs of a log:

batsched-py run -w jobs.csv -s my_policy.py:MyPolicy --attribute examples/job_attributes.py:Watts
"""

from collections.abc import Mapping
from typing import Any

from batsched_py.workload.attributes import JobAttributes


class Watts(JobAttributes):
    """The power of a job: what a column ``watts`` says, else an estimate by its size."""

    def of(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A policy finds it as ``job.extra["watts"]``."""
        return {"watts": record.get("watts", 120.0 * record["requested_processors"])}
