"""A submit plugin of your own: it sends short jobs to a partition, and refuses those without an account.

batsched-py run -w twin/workload.json -p twin/platform.toml -s slurm -o configuration_file=twin/slurm.toml \
    -o submit_plugin=examples/submit_plugin.py:ShortJobs
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.protocol.jobs import Job
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.policy.submit_plugin import SubmitPlugin, Submitted


@dataclass
class ShortJobs(SubmitPlugin):
    """Jobs of at most an hour go to the partition ``short`` where there is one."""

    name = "short-jobs"

    minutes: Annotated[int, Meta(description="How long a short job may be.", ge=1)] = 60

    def begin(self, configuration: Configuration) -> None:
        """Look whether there is such a partition."""
        self.has_partition = any(partition.name == "short" for partition in configuration.partitions)

    def submit(self, asked: Submitted, job: Job) -> str | None:
        """Change the partition of a short job."""
        if not asked.account:
            return "give an account (-A)"
        if self.has_partition and asked.time_limit <= 60 * self.minutes:
            asked.partitions = ["short"]
        return None
