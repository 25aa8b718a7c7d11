"""What a change of the configuration would do: both schedules, and who gains and who loses.

It is simulated before and after the change, over several reactions of users and phases of Slurm's clocks.
"""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.pages import figure, section, tiles, time_text, write_figures_page
from batsched_py.analysis.runs import Estimate
from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.slurm.changes import Rule
from batsched_py.slurm.comparison import GROUPINGS, Compared, by_group, labels, usage, usage_figure, waits_of
from batsched_py.slurm.policy.settings import read_configuration
from batsched_py.slurm.prepared import Phase, Prepared
from batsched_py.slurm.worth import Worth, read_worth
from batsched_py.users import USERS

#: A difference of mean waits that is surely below this many seconds is none.
SMALL = 1.0

Verdict = Literal["gains", "loses", "unclear", "the same", "within the twin's error"]


class Effect(Struct, frozen=True, kw_only=True):
    """What a change does to the waits of some jobs; times are in seconds."""

    jobs: float
    """How many run before and after the change, in the mean over repetitions; the others do not count."""
    no_more: float
    """How many run before the change and not after it."""
    recorded: float | None = None
    """The mean wait that was recorded, if the twin was made of a log."""
    error: float = 0.0
    """How far the mean wait of the twin was from the recorded one, without any change."""
    new: float
    """How many run after the change and not before it."""
    before: float
    """The mean wait."""
    after: float
    difference: Estimate
    """After less before, in the mean over repetitions, with its interval."""
    repetitions: int = 1
    """In how many of them such jobs run before and after."""

    @property
    def verdict(self) -> Verdict:
        """Whether these jobs gain, as far as the repetitions tell."""
        mean, half = self.difference.mean, self.difference.half_width
        if not self.jobs:
            return "loses" if self.no_more else "gains"
        if abs(mean) + (half or 0.0) < SMALL:
            return "the same"
        if abs(mean) <= half if half is not None else self.repetitions > 1:
            return "unclear"
        if abs(mean) <= self.error:
            return "within the twin's error"
        return "gains" if mean < 0 else "loses"


class Outcome(Struct, frozen=True, kw_only=True):
    """Both schedules, before and after a change."""

    changes: list[str]
    users: str
    seeds: list[int]
    """One repetition for each."""
    all: Effect
    groups: dict[str, dict[str, Effect]]
    """By class, partition, account, QOS and user; those who gain most come first."""
    only_before: list[str]
    """The jobs that run before the change and not after it, in the first repetition."""
    only_after: list[str]
    utilization: tuple[float, float]
    """The mean share of the machine that is used until the last job ends, before and after."""
    edges: list[float]
    levels: tuple[list[float], list[float]]
    """How much is in use between these times, before and after, in the first repetition."""


Pair = tuple[pd.DataFrame, pd.DataFrame]


def outcome(
    pairs: Sequence[Pair],
    changes: list[str],
    users: str,
    seeds: list[int],
    cores: tuple[int, int],
    worth: Worth | None = None,
) -> Outcome:
    """What comes of pairs of schedules, before and after on so many cores, of a twin worth so much."""
    first = pairs[0]
    for side, jobs in zip(("before", "after"), first, strict=True):
        if not len(jobs):
            raise InputError(f"no job runs {side} the change")
    edges, (before, after) = usage(first)
    utilization = [
        float(np.mean([_utilization(pair[side], cores[side]) for pair in pairs])) for side in (0, 1)
    ]
    return Outcome(
        changes=changes,
        users=users,
        seeds=seeds,
        all=_effect(pairs, None, None if worth is None else worth.all),
        groups={grouping: _grouped(pairs, grouping, worth) for grouping in GROUPINGS},
        only_before=[str(name) for name in first[0].index.difference(first[1].index)],
        only_after=[str(name) for name in first[1].index.difference(first[0].index)],
        utilization=(utilization[0], utilization[1]),
        edges=edges,
        levels=(before, after),
    )


def _grouped(pairs: Sequence[Pair], grouping: str, worth: Worth | None) -> dict[str, Effect]:
    marked = [tuple(jobs.assign(group=labels(jobs, grouping)) for jobs in pair) for pair in pairs]
    names = {name for pair in marked for table in pair for name in table["group"].unique() if name}
    found = {
        name: _effect(marked, name, None if worth is None else worth.of(grouping, name))
        for name in sorted(map(str, names))
    }
    return dict(sorted(found.items(), key=lambda item: (item[1].difference.mean, item[0])))


def _effect(pairs: Sequence[Sequence[pd.DataFrame]], group: str | None, known: Compared | None) -> Effect:
    """The effect on the jobs of a group; repetitions in which none of them run on both sides do not count."""
    means: list[tuple[float, float]] = []
    counts: list[tuple[int, int, int]] = []
    for pair in pairs:
        one, other = (table if group is None else table[table["group"] == group] for table in pair)
        both = one.index.intersection(other.index)
        counts.append((len(both), len(one) - len(both), len(other) - len(both)))
        if len(both):
            waits = [float(waits_of(table.loc[both]).mean()) for table in (one, other)]
            means.append((waits[0], waits[1]))
    before, after = (float(np.mean([pair[side] for pair in means])) if means else 0.0 for side in (0, 1))
    jobs, no_more, new = np.mean(counts, axis=0).tolist()
    return Effect(
        jobs=jobs,
        no_more=no_more,
        new=new,
        recorded=None if known is None else known.waits.mean_recorded,
        error=0.0 if known is None else abs(known.waits.mean_simulated - known.waits.mean_recorded),
        before=before,
        after=after,
        difference=Estimate.of([after - before for before, after in means]) if means else Estimate(0.0),
        repetitions=len(means),
    )


def _utilization(jobs: pd.DataFrame, cores: int) -> float:
    length = float(jobs["end"].max() - jobs["submit"].min())
    work = float(((jobs["end"] - jobs["start"]) * jobs["size"]).sum())
    return work / (cores * length) if length > 0 else 0.0


def what_if(
    folder: Path,
    changes: Sequence[str],
    other: Path | None,
    users: str,
    user_options: Mapping[str, str],
    repetitions: int,
    export: str | None = None,
    longer: Rule = "leave",
) -> Outcome:
    """Simulate a scenario with and without changes, or beside an ``other`` one, once for each seed.

    A seed is for what users draw at random, and for the phases of Slurm's clocks, which both simulations have
    in common: what a change of phases would bring about as well is no effect. How users had reacted is taken
    from the recorded finishes of their jobs; where these are not known, from a simulation before the change.
    What becomes of jobs that ask for more time than the change allows is told by ``longer``.
    The files of the first two simulations begin with ``export``, if they are asked for.
    """
    is_random = "seed" in USERS.options(users) and "seed" not in user_options
    seeds = list(range(repetitions))
    pairs: list[Pair] = []
    hosts = 0, 0
    with (
        TemporaryDirectory(prefix="what-if-") as room,
        shown("pairs of simulations", lambda: (len(pairs), len(seeds))),
    ):
        before = Prepared.of(folder, (), Path(room) / "before")
        after = Prepared.of(other or folder, changes, Path(room) / "after")
        after.fit(longer)
        configuration = read_configuration(before.configuration)
        if users != "rigid":
            finishes = before.finishes()
            for scenario in (before, after):
                scenario.remember(finishes)
        for seed in seeds:
            options = {**user_options, "seed": str(seed)} if is_random else dict(user_options)
            phase = Phase.of(seed, configuration).options
            one, two = (scenario.simulated(users, options, phase) for scenario in (before, after))
            hosts = one.overview.hosts, two.overview.hosts
            if export is not None and not pairs:
                one.save(f"{export}_before")
                two.save(f"{export}_after")
            pairs.append((before.table(one), after.table(two)))
    told = [*(changes or [str(other)]), *([] if longer == "leave" else [f"--longer {longer}"])]
    return outcome(pairs, told, users, seeds, hosts, read_worth(folder))


EFFECT_HEADS: Final = ("", "jobs", "mean wait, recorded", "before", "after", "difference", "who")

#: So many jobs that run on one side only are named.
NAMED: Final = 10


def ran_no_more(found: Outcome) -> str:
    """What is told of jobs that run on one side only, if there are any; waits are those of the others."""
    no_more, new = found.all.no_more, found.all.new
    if not no_more and not new:
        return ""
    return (
        f"{no_more:,.0f} jobs run before the change only{_named(found.only_before)}, {new:,.0f} after it only"
        f"{_named(found.only_after)}; waits are those of jobs that run on both sides"
    )


def _named(names: Sequence[str]) -> str:
    """The first of some names.

    >>> _named(["7", "8"]), _named([])
    (' (7, 8)', '')
    """
    more = ", ..." if len(names) > NAMED else ""
    return f" ({', '.join(names[:NAMED])}{more})" if names else ""


def write_what_if_page(path: str | Path, found: Outcome) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"What if: {'; '.join(found.changes)}"
    repeated = f", {len(found.seeds)} repetitions" if len(found.seeds) > 1 else ""
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">Users: {html.escape(found.users)}{repeated}. Differences are of mean waits, after less before,
with a 95 % interval over the repetitions. {ran_no_more(found)}</p>
<div id="tiles">{_tiles(found)}</div>"""
    sections = [
        *by_group(found.groups, EFFECT_HEADS, effect_cells),
        section("Utilization", "", figure("Cores in use, over time", "utilization"), layout="wide"),
    ]
    levels = dict(zip(("before", "after"), found.levels, strict=True))
    drawn = {"utilization": usage_figure(found.edges, levels)}
    write_figures_page(path, title, header, "".join(sections), drawn)


def effect_cells(effect: Effect) -> list[str]:
    """The cells of a row behind its name."""
    difference = effect.difference
    count = f"{effect.jobs:,.0f}"
    if effect.no_more or effect.new:
        count += f" (-{effect.no_more:,.0f}, +{effect.new:,.0f})"
    if not effect.jobs:
        return [count, "?", "?", "?", "?", effect.verdict]
    mean = round(difference.mean, 1)
    sign = "-" if mean < 0 else "+"
    half = "" if difference.half_width is None else f" ± {time_text(round(difference.half_width, 1))}"
    return [
        count,
        "-" if effect.recorded is None else time_text(effect.recorded),
        time_text(effect.before),
        time_text(effect.after),
        f"{sign}{time_text(abs(mean))}{half}",
        effect.verdict,
    ]


def _tiles(found: Outcome) -> str:
    shown = effect_cells(found.all)
    before, after = found.utilization
    return tiles(
        [
            ("jobs", shown[0], ""),
            ("mean wait, after", shown[3], f"{shown[2]} before, {shown[1]} recorded"),
            ("difference", shown[4], shown[5]),
            ("utilization, after", f"{after:.1%}", f"{before:.1%} before"),
        ]
    )
