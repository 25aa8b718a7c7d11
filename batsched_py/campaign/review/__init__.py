"""Whether a reviewer would accept a study: checks of a run, of a campaign or of a plan.

Each check looks for one of the known ways to conclude what is not so (Frachtenberg and Feitelson, Pitfalls in
Parallel Job Scheduling Evaluation, JSSPP 2005; ``docs/sound-studies.md`` has them all). It says what it
found, with its number, and what to do about it. Nothing is simulated for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from batsched_py.analysis.runs.aggregate import MeasuredRun
from batsched_py.analysis.steadiness import Steadiness
from batsched_py.analysis.windows import Window
from batsched_py.campaign.store import is_population
from batsched_py.experiment import Experiment

if TYPE_CHECKING:
    from batsched_py.analysis.calibration import Verdict as CalibrationVerdict
    from batsched_py.analysis.outcome import Outcome

#: What a check says: all is well, a reader should know, or what is concluded may not be so.
Verdict = Literal["ok", "warn", "fail"]


class Check(Struct, frozen=True):
    """What one check says about a study."""

    name: str
    verdict: Verdict
    found: str
    """What it found, with its number."""
    remedy: str = ""
    """What to do about it."""

    def __str__(self) -> str:
        remedy = f" -> {self.remedy}" if self.remedy and self.verdict != "ok" else ""
        return f"{self.verdict:4} {self.name}: {self.found}{remedy}"


class LogFacts(Struct, frozen=True):
    """What a review must know of a log."""

    jobs: int
    """Those that ran."""
    unrequested: float
    """The share of them that requested no time."""
    raised: float
    """The share of them that ran for longer than they requested."""
    cancelled: float
    """The share of all records that were cancelled while they waited."""
    flurries: float
    """The share of all jobs that are in flurries of single users."""
    partitions: int
    """How many partitions have more than a tenth of the jobs."""
    machine: int | None
    load: float | None
    """Its work over what its machine could do in the time of its submissions."""
    model: str = ""
    """The model that generated it, if one did."""
    doubts: tuple[str, ...] = ()
    """What makes no sense in it."""
    changes: tuple[str, ...] = ()
    """What was done to it."""
    scaled: str = ""
    """Which of it gave it other times between arrivals than were recorded."""
    users: Mapping[str, int] = {}
    """The user of each job, by the job's number."""
    kinds: Mapping[int, int] = {}
    """How many jobs have the same user, size and request: changed logs have these in common."""


class StudiedRun(Struct, frozen=True, kw_only=True):
    """A run as a review sees it: planned or finished."""

    name: str
    axes: dict[str, str]
    experiment: Experiment | None = None
    """What it is made of, if that is known."""
    hosts: int | None = None
    """The size of the machine, if that is known."""
    log: LogFacts | None = None
    """What is known of its log, if that is one and is here."""
    windows: dict[str, Window] = {}
    """Over what it is measured, if that is not all of it."""
    measured: Sequence[MeasuredRun] = ()
    """What is measured of it, over each window; nothing before it has run."""
    steadiness: Steadiness | None = None
    outcome: Callable[[], Outcome] | None = None
    """Reads what came of it."""
    control: str = ""
    """Under what the same users were simulated beside it, if a control was made."""
    calibrated: Callable[[], CalibrationVerdict | None] | None = None
    """Tells how near its waits are to the recorded ones, where it simulates what was recorded by EASY."""

    @property
    def users(self) -> str:
        """The name of the users who react, if there are such."""
        users = None if self.experiment is None else self.experiment.actors.users
        return "" if users is None or users.name == "rigid" else users.name

    @property
    def is_population(self) -> bool:
        """Whether its jobs are those of users made of the log's, so that each seed is another workload."""
        return self.experiment is not None and is_population(self.experiment)

    @property
    def scheduler(self) -> str:
        """The name of its policy."""
        return "" if self.experiment is None else self.experiment.actors.scheduler.name

    @property
    def order(self) -> str:
        """In which order its policy takes waiting jobs, if an option says so."""
        return (
            "" if self.experiment is None else str(self.experiment.actors.scheduler.options.get("order", ""))
        )


class Study(Struct, frozen=True, kw_only=True):
    """What is reviewed."""

    runs: Sequence[StudiedRun]
    metrics: Sequence[str] = ()
    """What its tables show."""
    baseline: str = ""
    unit: str = ""
    """The axis of what is independent, if the plan names it."""
    is_campaign: bool = True
    """Whether it compares something; a single run does not."""
    has_run: bool = True
    nb_missing: int = 0
    """How many of its runs failed or were never done."""
    own: dict[str, Any] = {}
    """What is known of metrics that are not ours."""


def review(study: Study) -> list[Check]:
    """What all checks say, the worst first."""
    from batsched_py.campaign.review import conclusions, conditions

    checks: list[Check] = []
    for each in (*conditions.CHECKS, *conclusions.CHECKS):
        checks += each(study)
    return worst_first(checks)


def worst_first(checks: Sequence[Check]) -> list[Check]:
    """Those that fail, those that warn, and the others."""
    order = ("fail", "warn", "ok")
    return sorted(checks, key=lambda check: order.index(check.verdict))


#: Looks at a study; a check that makes no sense for it says nothing.
Looks = Callable[[Study], Iterator[Check]]
