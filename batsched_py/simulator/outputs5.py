"""The output files of Batsim 5, where they are not those of Batsim 4."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import msgspec

from batsched_py.protocol.jobs import Job
from batsched_py.simulator.outputs import UNMEASURED, CountsHosts, Outputs


class Batsim5Outputs(Outputs):
    """Files whose names just follow the prefix, such as ``out/``; what came out of it all is in JSON.

    The makespan begins with the first submission of a job that was executed. Batsim 5 also writes a
    ``real_exec_info.json``, which holds nothing but seconds of its own clock; the same simulation must give
    the same bytes, so we do not.
    """

    _after_prefix = ""
    _first_submission = inf

    def finished(self, job: Job, *end: Any, **named: Any) -> None:
        """A job left its hosts."""
        self._first_submission = min(self._first_submission, job.submission_time)
        super().finished(job, *end, **named)

    def _write_schedule(self, machines: CountsHosts) -> None:
        values = self._schedule(machines)
        if self.results.nb_finished:
            values["makespan"] = self.results.makespan - self._first_submission
        told = {
            name: None if isinstance(value, float) and not isfinite(value) else value
            for name, value in values.items()
            if value != UNMEASURED
        }
        if self._prefix:
            write = self._begin_file("schedule.json", "")
            write(msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n")
