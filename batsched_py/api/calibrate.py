"""``batsched_py.calibrate``: how far a simulation may be trusted for a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batsched_py.api.log import FileName, Log, read_log
from batsched_py.api.simulate import Options, simulate

if TYPE_CHECKING:
    from batsched_py.analysis.calibration import Calibration
    from batsched_py.api.result import Result
    from batsched_py.schedulers import Scheduler


def calibrate(
    log: Log | FileName,
    scheduler: str | type[Scheduler] | Scheduler = "easy",
    *,
    options: Options | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Calibration:
    """Replay a log as it was, and compare the simulated with the recorded waits.

    The scheduler should be like that of the recorded machine. The settings are those of
    :func:`batsched_py.simulate`. ``calibrate(...).verdict`` says how far to trust such simulations of this
    log, and ``calibrate(...).save("page.html")`` writes a page.
    """
    known = log if isinstance(log, Log) else read_log(log)
    return compared(known, simulate(known, scheduler, options=options, progress=progress, **settings))


def compared(log: Log, replay: Result) -> Calibration:
    """A log beside its replay."""
    from batsched_py.analysis.calibration import calibration

    return calibration(log.columns, replay.jobs, replay.overview.hosts, replay.overview.scheduler)
