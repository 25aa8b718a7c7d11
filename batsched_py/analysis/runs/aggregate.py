"""Results over repetitions: means, intervals, and differences to a baseline in pairs.

What is repeated are parts of a log and seeds. Two runs are a pair when they differ on the axis of the
baseline only, so that both had the same jobs, the same machine and the same random numbers.

Not all repetitions are independent of each other: ten seeds in each of eleven parts are eleven workloads, not
110. One axis has the *units* of independence. What differs on other axes is averaged within each of them, and
intervals and tests are over units.

Rows may also be told apart by fewer axes than those on which runs differ. Then different experiments are
pooled, such as several loads. They are no repetitions of one experiment, so there are means, but neither
intervals nor tests. The means of a run without a steady state say how long it is, so they are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs import FEWEST, SIGNIFICANT, Estimate, Paired, counted, holm, kept_of, lag_1
from batsched_py.analysis.runs.columns import NOTHING, Own, column_of
from batsched_py.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


#: The axes on which an experiment is repeated: of its results, the mean is of interest.
REPETITIONS = ("part", "seed")

#: The axes whose values can be the units of independence.
Unit = Literal["part", "seed", "log"]

#: The choice on each axis.
Place = tuple[tuple[str, str], ...]


class MeasuredRun(Protocol):
    """A finished run, or a window of it: its place in the plan, its metrics and its files."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def axes(self) -> Mapping[str, str]:
        """The choice on each axis of the plan."""

    @property
    def metrics(self) -> Mapping[str, float | None]:
        """By name; none where a metric makes no sense."""

    @property
    def files(self) -> Mapping[str, Path]:
        """The files that it has left, by the names that links to them have."""

    @property
    def remark(self) -> str:
        """How to make it again, or why it failed."""

    @property
    def unstable(self) -> str:
        """Why its means say little, if it is known not to be steady."""


R = TypeVar("R", bound=MeasuredRun)


class Group(Struct, Generic[R], frozen=True):
    """Runs that make the same choices on some axes."""

    axes: dict[str, str]
    runs: list[R]

    def values(self, metric: str) -> list[float]:
        """The values of a metric, of the runs that have it."""
        return [value for run in self.runs if (value := run.metrics.get(metric)) is not None]

    def by_unit(self, metric: str, unit: str) -> dict[str, float]:
        """The mean of a metric in each unit, in their order."""
        known = [(run, value) for run in self.runs if (value := run.metrics.get(metric)) is not None]
        return means_by_unit(known, unit)

    @property
    def unstable(self) -> str:
        """Why means of these runs say little, if one of them is known not to be steady."""
        return next((run.unstable for run in self.runs if run.unstable), "")


def means_by_unit(values: Iterable[tuple[MeasuredRun, float]], unit: str) -> dict[str, float]:
    """The mean of the values of runs in each unit; those of parts in the order of time."""
    units: dict[str, list[float]] = {}
    for run, value in values:
        units.setdefault(run.axes.get(unit, ""), []).append(value)
    return {name: fmean(units[name]) for name in sorted(units, key=lambda name: (len(name), name))}


def unit_of(runs: Iterable[MeasuredRun], named: str = "") -> str:
    """The axis of the units of independence: the one that is named, else parts, else seeds."""
    seen: dict[str, set[str | None]] = {axis: set() for axis in REPETITIONS}
    for run in runs:
        for axis in REPETITIONS:
            seen[axis].add(run.axes.get(axis))
    return named or next((axis for axis in REPETITIONS if len(seen[axis] - {None}) > 1), "part")


def repeated_axes(unit: str) -> tuple[str, ...]:
    """The axes on which runs of one experiment differ."""
    return (*REPETITIONS, "log") if unit == "log" else REPETITIONS


def varying_axes(runs: Sequence[MeasuredRun]) -> list[str]:
    """The axes on which runs differ, in the order of the plan."""
    known = dict.fromkeys(axis for run in runs for axis in run.axes)
    return [axis for axis in known if len({run.axes.get(axis) for run in runs}) > 1]


def grouped(runs: Iterable[R], place: Callable[[R], Place]) -> list[Group[R]]:
    """The runs, those of the same place together."""
    groups: dict[Place, Group[R]] = {}
    for run in runs:
        axes = place(run)
        groups.setdefault(axes, Group(dict(axes), [])).runs.append(run)
    return list(groups.values())


def repetitions(runs: Iterable[R]) -> list[Group[R]]:
    """The runs, those together that differ in part or seed only."""
    return grouped(runs, lambda run: place_without(run, *REPETITIONS))


def place_without(run: MeasuredRun, *axes: str) -> Place:
    """The choices of a run on all other axes."""
    return tuple((axis, name) for axis, name in run.axes.items() if axis not in axes)


def known_metrics(names: Iterable[str], runs: Iterable[MeasuredRun]) -> list[str]:
    """Those of some metrics that at least one run has."""
    known = {name for run in runs for name in run.metrics}
    return [name for name in names if name in known]


def frame_of(runs: Sequence[MeasuredRun]) -> pd.DataFrame:
    """A row for each run: its name, the choice on each axis, whether it is unstable, and its metrics."""
    import pandas as pd

    axes = list(dict.fromkeys(axis for run in runs for axis in run.axes))
    metrics = list(dict.fromkeys(name for run in runs for name in run.metrics))
    rows = [
        [
            run.name,
            *(run.axes.get(axis) for axis in axes),
            bool(run.unstable),
            *(run.metrics.get(name) for name in metrics),
        ]
        for run in runs
    ]
    columns = ["run", *axes, "unstable", *metrics]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(metrics, float))


class Baseline(Struct, frozen=True):
    """What others are compared with: a choice on one axis."""

    name: str
    axis: str = "scheduler"

    @classmethod
    def parse(cls, text: str) -> Baseline | None:
        """A scheduler, or ``AXIS=NAME``; nothing if nothing is said.

        >>> Baseline.parse("easy"), Baseline.parse("users=rigid")
        (Baseline(name='easy', axis='scheduler'), Baseline(name='rigid', axis='users'))
        """
        axis, equals, name = text.partition("=")
        return cls(name, axis) if equals else cls(text) if text else None

    def is_of(self, run: MeasuredRun) -> bool:
        """Whether a run makes this choice."""
        return run.axes.get(self.axis) == self.name


class Measured(Struct, frozen=True):
    """A metric over the runs of one group."""

    estimate: Estimate
    count: int
    """How many of them have it."""
    units: int = 0
    """How many units these are."""
    counted: float = 0.0
    """As how many independent ones they count in the interval."""
    nb_pairs: int = 0
    """How many of them make a pair with a run of the baseline."""
    difference: Estimate | None = None
    """To the baseline, if there are two pairs or more, and runs of both are steady."""
    paired: Paired | None = None
    """The tests of this difference, if there are enough units and no different experiments are pooled."""
    relative: float | None = None
    """The mean difference as a part of the baseline's mean."""
    lag_1: float | None = None
    """The autocorrelation of successive parts: of the differences to the baseline, or else of the values."""
    p_value: float | None = None
    """That of the t-test of pairs, raised for all tests of the page by Holm's method."""

    @property
    def is_shown(self) -> bool:
        """Whether a difference to the baseline is shown."""
        return self.p_value is not None and self.p_value < SIGNIFICANT


class Aggregate(Struct, frozen=True):
    """The results of a campaign over its repetitions."""

    by: list[str]
    """The axes that tell rows apart."""
    metrics: list[str]
    baseline: Baseline | None
    rows: list[tuple[Group[MeasuredRun], dict[str, Measured]]]
    """Runs that make the same choices, with what is measured of them by metric."""
    pooled: dict[str, list[str]]
    """The axes on which runs of one row differ although they are no repetitions, with the choices there."""
    own: Own
    """What is known of metrics that are not ours."""
    unit: str
    """The axis whose values are independent of each other."""
    window: str = ""
    """What is measured of each run, in words."""

    @property
    def nb_tests(self) -> int:
        """How many differences are tested."""
        return sum(each.paired is not None for _, measured in self.rows for each in measured.values())

    def frame(self) -> pd.DataFrame:
        """A row for each combination and metric: what is known of both, as numbers.

        ``low`` and ``high`` are the ends of the 95 % confidence interval of a mean over ``units``, which
        count as ``counted`` independent ones, and differences as ``counted_pairs``. ``p_value`` is that of
        Student's t-test for pairs, two-sided, and ``p_holm`` the same for all tests of the table together;
        ``sign_p_value`` is that of the sign test; ``effect_size`` is Cohen's d of pairs.
        """
        import pandas as pd

        records = [
            {**group.axes, "metric": metric, "unstable": bool(group.unstable), **_figures(found)}
            for group, measured in self.rows
            for metric, found in measured.items()
        ]
        return pd.DataFrame(records)


def _figures(measured: Measured) -> dict[str, float | int | None]:
    paired, difference = measured.paired, measured.difference or Estimate(float("nan"))
    return {
        "count": measured.count,
        "units": measured.units,
        "counted": measured.counted,
        "mean": measured.estimate.mean,
        "low": measured.estimate.low,
        "high": measured.estimate.high,
        "pairs": measured.nb_pairs,
        "counted_pairs": None if paired is None else paired.counted,
        "difference_mean": difference.mean,
        "difference_low": difference.low,
        "difference_high": difference.high,
        "relative_difference": measured.relative,
        "p_value": None if paired is None else paired.p_value,
        "p_holm": measured.p_value,
        "sign_p_value": None if paired is None else paired.sign_p_value,
        "effect_size": None if paired is None else paired.effect_size,
        "lag_1": measured.lag_1,
    }


def aggregate(
    runs: Sequence[MeasuredRun],
    metrics: Sequence[str],
    by: Sequence[str] = (),
    baseline: Baseline | None = None,
    own: Own = NOTHING,
    *,
    window: str = "",
    unit: str = "",
) -> Aggregate:
    """The means of some metrics over all runs that make the same choice on the axes ``by``.

    Unless they are given, these are the axes on which runs differ and that are no repetitions, or else the
    scheduler. If they leave out such an axis, there are no intervals and no tests. ``unit`` is the axis whose
    values are independent of each other, and ``window`` says what was measured of each run.
    """
    unit = unit_of(runs, unit)
    repeated = repeated_axes(unit)
    known = list(dict.fromkeys(axis for run in runs for axis in run.axes))
    axes = list(by) or [axis for axis in varying_axes(runs) if axis not in repeated] or ["scheduler"]
    for axis in [*axes, *([] if baseline is None else [baseline.axis])]:
        if axis not in known:
            raise InputError(f"the runs have no axis {axis!r}; they have {', '.join(known)}")
    if baseline is not None:
        if baseline.axis not in axes:
            raise InputError(
                f"rows must be told apart by the {baseline.axis}, to be compared with {baseline.name}"
            )
        if not any(baseline.is_of(run) for run in runs):
            raise InputError(f"no run has the {baseline.axis} {baseline.name!r}, to compare others with")
    partners = {} if baseline is None else partners_of(runs, baseline)
    shown = known_metrics(metrics, runs)
    groups = grouped(runs, lambda run: tuple((axis, run.axes.get(axis, "")) for axis in axes))
    pooled = _pooled(groups, (*axes, *repeated))
    kept = _kept(groups, shown, partners) if unit == "part" and not pooled else {}

    def measured(name: str, group: Group[MeasuredRun]) -> Measured:
        its = kept.get((_log_of(group), name), _Kept())
        return _measured(name, group, partners, bool(pooled), unit, own, its)

    rows = [(group, {name: measured(name, group) for name in shown}) for group in groups]
    return Aggregate(axes, shown, baseline, _with_holm(rows), pooled, own, unit, window)


def _pooled(groups: Sequence[Group[MeasuredRun]], apart: Sequence[str]) -> dict[str, list[str]]:
    """The axes that neither tell rows apart nor are repetitions, but on which runs of one group differ."""
    pooled: dict[str, dict[str, None]] = {}
    for group in groups:
        for axis in dict.fromkeys(axis for run in group.runs for axis in run.axes):
            choices = dict.fromkeys(run.axes.get(axis, "none") for run in group.runs)
            if axis not in apart and len(choices) > 1:
                pooled.setdefault(axis, {}).update(choices)
    return {axis: list(choices) for axis, choices in pooled.items()}


class _Kept(Struct, frozen=True):
    """How much each part keeps of the one before, as all rows of a log show it in a metric."""

    values: float = 0.0
    differences: float = 0.0
    """Of those to the baseline."""


def _kept(
    groups: Sequence[Group[MeasuredRun]], metrics: Sequence[str], partners: Partners
) -> dict[tuple[str, str], _Kept]:
    """What the steady rows of each log show in each metric."""
    steady: dict[str, list[Group[MeasuredRun]]] = {}
    for group in groups:
        if not group.unstable:
            steady.setdefault(_log_of(group), []).append(group)
    return {
        (log, name): _Kept(
            kept_of([[*group.by_unit(name, "part").values()] for group in rows]),
            kept_of([differences_of(pairs_of(name, group.runs, partners), "part") for group in rows]),
        )
        for log, rows in steady.items()
        for name in metrics
    }


def _log_of(group: Group[MeasuredRun]) -> str:
    return group.runs[0].axes.get("log", "")


#: For each run, by its name, those of the baseline that it makes a pair with.
Partners = Mapping[str, Sequence[MeasuredRun]]


def partners_of(runs: Iterable[MeasuredRun], baseline: Baseline) -> dict[str, list[MeasuredRun]]:
    """For each run, by its name, the runs of the baseline that have all else in common with it.

    Where only one of both depends on chance, it is compared with all seeds of the other.
    """
    axis = baseline.axis
    runs = list(runs)
    same: dict[Place, list[MeasuredRun]] = {}
    seeded: dict[Place, list[MeasuredRun]] = {}
    for run in filter(baseline.is_of, runs):
        same.setdefault(place_without(run, axis), []).append(run)
        seeded.setdefault(place_without(run, axis, "seed"), []).append(run)
    partners = {}
    for run in runs:
        if not baseline.is_of(run):
            found = same.get(place_without(run, axis)) or same.get(place_without(run, axis, "seed"))
            if found is None and "seed" not in run.axes:
                found = seeded.get(place_without(run, axis))
            if found is not None:
                partners[run.name] = found
    return partners


def pairs_of(
    metric: str, runs: Iterable[MeasuredRun], partners: Partners
) -> list[tuple[MeasuredRun, float, float]]:
    """The runs that make a pair and have a metric: its value, and that of the baseline."""
    pairs = []
    for run in runs:
        mine = run.metrics.get(metric)
        its = [
            value for each in partners.get(run.name, ()) if (value := each.metrics.get(metric)) is not None
        ]
        if mine is not None and its:
            pairs.append((run, mine, fmean(its)))
    return pairs


def differences_of(pairs: Iterable[tuple[MeasuredRun, float, float]], unit: str) -> list[float]:
    """The mean differences within pairs, one for each unit."""
    return [*means_by_unit(((run, mine - its) for run, mine, its in pairs), unit).values()]


def _measured(
    metric: str,
    group: Group[MeasuredRun],
    partners: Partners,
    are_pooled: bool,
    unit: str,
    own: Own,
    kept: _Kept,
) -> Measured:
    column = column_of(metric, own)
    values, count = list(group.by_unit(metric, unit).values()), len(group.values(metric))
    estimate = Estimate.of(values, column.possible, kept.values)
    if are_pooled:
        estimate = Estimate(fmean(group.values(metric)) if count else float("nan"))
    pairs = pairs_of(metric, group.runs, partners)
    found = Measured(
        estimate,
        count,
        len(values),
        counted(len(values), kept.values),
        len(pairs),
        lag_1=lag_1(values) if unit == "part" else None,
    )
    is_unstable = group.unstable or any(
        each.unstable for run in group.runs for each in partners.get(run.name, ())
    )
    if len(pairs) < 2 or is_unstable:
        return found
    differences = differences_of(pairs, unit)
    base = fmean(its for _, _, its in pairs)
    is_tested = not are_pooled and len(differences) >= FEWEST
    difference = (
        Estimate.of(differences, kept=kept.differences)
        if not are_pooled
        else Estimate(fmean(mine - its for _, mine, its in pairs))
    )
    return replace(
        found,
        difference=difference,
        paired=Paired.of(differences, kept.differences) if is_tested and column.better != "neither" else None,
        relative=difference.mean / base if base else None,
        lag_1=lag_1(differences) if unit == "part" and not are_pooled else None,
    )


Rows = list[tuple[Group[MeasuredRun], dict[str, Measured]]]


def _with_holm(rows: Rows) -> Rows:
    """The rows with p-values that are raised for all tests together."""
    tested = [each.paired.p_value for _, row in rows for each in row.values() if each.paired is not None]
    raised = iter(holm(tested))
    return [
        (
            group,
            {
                name: each if each.paired is None else replace(each, p_value=next(raised))
                for name, each in row.items()
            },
        )
        for group, row in rows
    ]
