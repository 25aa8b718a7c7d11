"""A control for users who react: the same on the machine of the log, under the policy that fits it best.

Lateness compares a simulation with the log. A part of it is due to what is not simulated: if simulated waits
are shorter than recorded ones, even the log's own machine makes users early. What a change does is the
difference to a control, job by job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.calibration import nearest
from batsched_py.api.log import Log, calibrate, read_log
from batsched_py.api.simulating import simulate_experiment
from batsched_py.api.terminal import duration
from batsched_py.campaign.plan import CONTROL_POLICIES
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Machine

if TYPE_CHECKING:
    from batsched_py.analysis.calibration import Verdict
    from batsched_py.api.result import Result


class Control(Struct, frozen=True, kw_only=True):
    """A simulation beside its control; times are in seconds."""

    scheduler: str
    """The policy of the control."""
    hosts: int
    """The machine of the control, which is that of the log."""
    lateness: float
    """How much later than recorded jobs are submitted in the simulation, on average."""
    control_lateness: float
    """The same in the control: what is due to the simulation alone."""
    mean_difference: float
    """How much later than in the control jobs are submitted, on average over the jobs of both."""
    p50_difference: float
    p95_difference: float
    verdict: Verdict
    """What :func:`~batsched_py.calibrate` says of the control's policy and the log."""

    @property
    def words(self) -> str:
        """Under what it was simulated."""
        return f"{self.scheduler} on {self.hosts:,} hosts"

    def rows(self) -> list[tuple[str, str]]:
        """What people read."""
        return [
            ("control", self.words),
            ("  how well it fits the log", self.verdict.trust),
            ("mean lateness", _signed(self.lateness)),
            ("  of the control", _signed(self.control_lateness)),
            ("later than the control, mean", _signed(self.mean_difference)),
            ("  median, p95", f"{_signed(self.p50_difference)}, {_signed(self.p95_difference)}"),
        ]


def control_of(result: Result) -> Control:
    """Simulate the control of a result with users who replay a log, and compare both."""
    experiment = result.experiment
    files = experiment.scenario.workloads.files
    if experiment.actors.users is None or result.outcome.recorded is None:
        raise InputError("a control is for users who replay a log, such as --users think-time")
    if len(files) != 1 or result.workloads[0].nb_hosts is None:
        raise InputError("a control needs one log that says how large its machine was (MaxProcs)")
    known = result.log_in_memory
    log = Log(known) if known is not None else read_log(files[0])
    fit = nearest([calibrate(log, name, progress=False) for name in CONTROL_POLICIES])
    scenario = replace(experiment.scenario, machine=Machine())
    actors = replace(experiment.actors, scheduler=Choice(fit.scheduler))
    control = simulate_experiment(
        replace(experiment, scenario=scenario, actors=actors), logs=None if known is None else {0: known}
    )
    times = [each.jobs.set_index("job_id")["submission_time"] for each in (result, control)]
    difference = (times[0] - times[1]).dropna().to_numpy()
    median, most = np.percentile(difference, (50, 95)).tolist()
    return Control(
        scheduler=fit.scheduler,
        hosts=control.overview.hosts,
        lateness=result.metrics["mean_lateness"],
        control_lateness=control.metrics["mean_lateness"],
        mean_difference=float(difference.mean()),
        p50_difference=median,
        p95_difference=most,
        verdict=fit.verdict,
    )


def _signed(seconds: float) -> str:
    return f"-{duration(-seconds)}" if seconds < 0 else duration(seconds)
