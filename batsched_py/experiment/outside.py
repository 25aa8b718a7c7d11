"""What comes from outside: failures and what is done about them, and what is known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from batsched_py.decision.process import Outlook
from batsched_py.decision.submissions import FailureRule
from batsched_py.errors import InputError
from batsched_py.experiment.value import Experiment, Failures, OnFailure, OutsideFiles
from batsched_py.outside.checkpoints import Checkpoints
from batsched_py.outside.curve import CURVES, NOTHING_KNOWN, Known, read_curve
from batsched_py.protocol.jobs import Host
from batsched_py.simulator.platform import Platform
from batsched_py.workload.model import Workload, as_jobs

if TYPE_CHECKING:
    from batsched_py.outside.failures import Outage


DAY = 86400.0


def with_failure_rule(experiment: Experiment) -> Experiment:
    """The experiment with what becomes of jobs on hosts that fail, if nodes fail and nobody says it."""
    failing, restarting = experiment.scenario.failing, experiment.actors.restarting
    if restarting.on_failure is not None or (failing.failures is None and failing.failure_trace is None):
        return experiment
    restarting = replace(restarting, on_failure="resubmit")
    return replace(experiment, actors=replace(experiment.actors, restarting=restarting))


def failure_rule(restarting: OnFailure) -> FailureRule | None:
    """What becomes of jobs on hosts that fail."""
    match restarting.on_failure:
        case None:
            return None
        case "kill":
            return FailureRule(resubmits=False)
        case "resubmit":
            return FailureRule()
        case "checkpoint":
            return FailureRule(
                checkpoints=Checkpoints(restarting.checkpoint_interval, restarting.checkpoint_overhead)
            )


def failures_of(failing: Failures, platform: Platform, workloads: Sequence[Workload]) -> list[Outage]:
    """The failures of the machine."""
    if failing.failures is None and failing.failure_trace is None:
        if failing.mtbf is not None:
            raise InputError("--mtbf is for failures at random; give --failures exponential or weibull too")
        return []
    if failing.failures is not None and failing.failure_trace is not None:
        raise InputError("both --failures and --failure-trace say when nodes fail; give one of them")
    from batsched_py.outside.failures import RandomFailures, read_trace
    from batsched_py.outside.tables import Units

    units = Units(platform.as_protocol()[0])
    if failing.failure_trace is not None:
        return read_trace(failing.failure_trace, units)
    if failing.mtbf is None or failing.failures is None:
        raise InputError("--failures needs --mtbf S, the mean time from a repair to the next failure")
    if not 1 <= failing.mtbf < inf:
        raise InputError(f"--mtbf must be a second at least, not {failing.mtbf:g}")
    if failing.failures_until is not None and not 0 <= failing.failures_until < inf:
        raise InputError(f"--failures-until must be a time that comes, not {failing.failures_until:g}")
    law = RandomFailures(
        failing.failures, failing.mtbf, failing.repair_time, failing.weibull_shape, failing.failure_seed
    )
    until = failing.failures_until
    if until is None:
        submissions = [as_jobs(workload.jobs).submission_times for workload in workloads]
        until = max(2 * max((float(times.max()) for times in submissions if len(times)), default=0.0), DAY)
    return law.outages(units, until)


def outlook_of(files: OutsideFiles) -> Outlook | None:
    """What tells it to a machine, if anything is said; the files are read when the hosts are known."""
    if files.closures is None and not any(_curve_files(files).values()):
        if files.outside_period is not None:
            raise InputError(
                "--outside-period is for --price, --carbon, --temperature and --power-cap; give one of them"
            )
        return None
    known = read_curves(files)

    def outlook(hosts: Sequence[Host]) -> Known:
        if files.closures is None:
            return known
        from msgspec.structs import replace

        from batsched_py.outside.closures import read_closures

        return replace(known, closures=tuple(read_closures(files.closures, hosts).all))

    return outlook


def read_curves(files: OutsideFiles) -> Known:
    """What the files say of prices, carbon, temperature and the power that may be drawn."""
    curves: dict[str, Any] = {
        name: read_curve(file, files.outside_period)
        for name, file in _curve_files(files).items()
        if file is not None
    }
    return Known(**curves) if curves else NOTHING_KNOWN


def _curve_files(files: OutsideFiles) -> dict[str, str | None]:
    return {name: getattr(files, name) for name in CURVES}
