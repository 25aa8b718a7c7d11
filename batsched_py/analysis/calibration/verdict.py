"""The verdict: how far a simulation may be trusted, by a rule that ``docs/calibration.md`` explains."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from batsched_py.analysis.calibration.waits import Waits

Trust = Literal["good", "fair", "poor", "unknown"]

#: The largest factor between the means, the least rank correlation and the least share of near waits.
GOOD = (1.25, 0.7, 0.6)
FAIR = (2.0, 0.5, 0.4)

#: With fewer jobs nothing can be said.
FEWEST_JOBS = 100

WORDS: dict[Trust, str] = {
    "good": "The simulation is close to what happened. Its waits may be read as those of this machine, for "
    "groups of jobs as shown here, and so may differences between schedulers.",
    "fair": "The simulation resembles what happened. Compare schedulers and settings with it, but do not "
    "read its waits as those of this machine.",
    "poor": "The simulation does not show what happened on this machine. Take the log as a workload: what is "
    "found with it is about the simulated machine and scheduler, not about the recorded ones.",
    "unknown": "Nothing can be said: the log does not tell how long enough of its jobs waited.",
}


class Verdict(Struct, frozen=True, kw_only=True):
    """How far to trust, in one word and in several, and why."""

    trust: Trust
    words: str
    reasons: list[str]


def verdict(waits: Waits | None) -> Verdict:
    """The verdict on the waits of all jobs that can be compared."""
    if waits is None or waits.jobs < FEWEST_JOBS:
        count = 0 if waits is None else waits.jobs
        return Verdict(
            trust="unknown",
            words=WORDS["unknown"],
            reasons=[f"{count:,} jobs can be compared; {FEWEST_JOBS} are needed"],
        )
    correlation = waits.rank_correlation or 0.0
    trust: Trust = "good" if _is_within(waits, GOOD) else "fair" if _is_within(waits, FAIR) else "poor"
    return Verdict(
        trust=trust,
        words=WORDS[trust],
        reasons=[
            f"mean waits differ by a factor of {waits.factor:.2f} (good: at most {GOOD[0]:g}, fair: "
            f"{FAIR[0]:g})",
            f"the rank correlation of waits is {correlation:.2f} (good: at least {GOOD[1]:g}, fair: "
            f"{FAIR[1]:g})",
            f"{waits.near:.0%} of the jobs have a wait near the recorded one (good: at least {GOOD[2]:.0%}, "
            f"fair: {FAIR[2]:.0%})",
        ],
    )


def _is_within(waits: Waits, limits: tuple[float, float, float]) -> bool:
    most, least_correlation, least_near = limits
    correlation = waits.rank_correlation or 0.0
    return waits.factor <= most and correlation >= least_correlation and waits.near >= least_near
