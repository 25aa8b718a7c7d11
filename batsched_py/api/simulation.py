"""One simulation in this process, from an experiment to its result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from batsched_py.api.overview import Overview
from batsched_py.api.progress import shown
from batsched_py.api.result import Result
from batsched_py.experiment import Experiment
from batsched_py.experiment.build import NOTHING_GIVEN, Given, read_workloads
from batsched_py.experiment.run import GoThrough, run_experiment
from batsched_py.simulator.memory_files import PREFIX, MemoryFiles
from batsched_py.simulator.outputs import OutputFile, Results

if TYPE_CHECKING:
    from batsched_py.workload.swf_log import SwfLog


def simulate_experiment(
    experiment: Experiment,
    *,
    export: str | None = None,
    progress: bool = False,
    logs: Mapping[int, SwfLog] | None = None,
    given: Given = NOTHING_GIVEN,
    watched: GoThrough | None = None,
) -> Result:
    """Simulate an experiment; some of its logs may be in memory, and some of its actors objects.

    ``watched`` goes through the simulation in place of the usual loop, and shows how far it is.
    """
    began = time.perf_counter()
    workloads = read_workloads(experiment.scenario.workloads, logs)
    nb_jobs = sum(len(workload.jobs) for workload in workloads)

    def meanwhile(results: Results) -> AbstractContextManager[Any]:
        wanted = progress and watched is None
        return shown("jobs", lambda: (results.nb_jobs, nb_jobs)) if wanted else nullcontext()

    kept = MemoryFiles() if export is None else None
    batsim = run_experiment(
        experiment,
        workloads,
        export or PREFIX,
        new_file=OutputFile if kept is None else kept.new_file,
        given=given,
        watched=watched,
        meanwhile=meanwhile,
    )
    files = batsim.outputs.files if kept is None else []
    overview = Overview.of(experiment, batsim, files, time.perf_counter() - began)
    return Result(experiment, overview, workloads, kept or str(export), logs or {})
