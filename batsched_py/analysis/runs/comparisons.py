"""What can be told of two choices from their runs: which is better, or that no difference is shown."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs import FEWEST, SIGNIFICANT, Paired, aggregate, holm, kept_of
from batsched_py.analysis.runs.columns import NOTHING, ColumnFormat, Own, column_of

#: Rows that differ on these axes only had the same jobs, machine and users: so one can be better.
DECIDING = ("scheduler", "allocator")

#: What the units of independence are called.
UNITS = {"part": "parts", "seed": "seeds", "log": "logs"}


class Comparison(Struct, frozen=True):
    """Two schedulers or other choices, and by how much they differ in a metric."""

    where: dict[str, str]
    """What both have in common: log, platform, users."""
    metric: str
    unit: str
    """That of the metric."""
    better: str
    """The one with the better mean, and so better if a difference is shown."""
    worse: str
    paired: Paired
    """The better one less the worse one."""
    units: str = "part"
    """The axis of what is independent."""
    p_value: float = 1.0
    """That of the t-test of pairs, raised for all comparisons of the page by Holm's method."""
    nb_tests: int = 1
    """How many comparisons the page has."""

    @property
    def is_shown(self) -> bool:
        """Whether there is a difference, as far as the repetitions tell."""
        return self.p_value < SIGNIFICANT

    @property
    def amount(self) -> str:
        """By how much they differ, with half of the interval."""
        difference = self.paired.difference
        form = ColumnFormat.of(self.unit, [difference])
        half = (difference.half_width or 0) / form.scale
        return f"{abs(difference.mean) / form.scale:.3g} ± {half:.2g} {form.unit}".rstrip()

    @property
    def common(self) -> str:
        """What both have in common."""
        return ", ".join(self.where.values())

    def __str__(self) -> str:
        amount, common = self.amount, self.common
        tests = (
            f"p = {self.p_value:.2g} by Holm over {self.nb_tests}, sign test {self.paired.sign_p_value:.2g}"
        )
        units, number = self.paired.nb_units, self.paired.counted
        fewer = f", counted as {number:.1f}" if number < units else ""
        about = f"({tests}; {units} {UNITS[self.units]}{fewer})"
        if self.is_shown:
            return (
                f"{common}: {self.better} is better than {self.worse} in {self.metric} by {amount} {about}."
            )
        return (
            f"{common}: no difference shown between {self.better} and {self.worse} in {self.metric}: "
            f"{amount} {about}."
        )


def compare(
    runs: Sequence[aggregate.MeasuredRun],
    metrics: Sequence[str],
    baseline: str = "",
    own: Own = NOTHING,
    unit: str = "",
) -> list[Comparison]:
    """Every two schedulers that had the same repetitions, by the tests that tables have, over enough units.

    With a ``baseline``, as a plan names it, only others are compared with that choice, on its axis. What is
    not steady is not compared.
    """
    chosen = aggregate.Baseline.parse(baseline) or aggregate.Baseline("")
    unit = aggregate.unit_of(runs, unit)
    common = [*aggregate.REPETITIONS, chosen.axis, *(["log"] if unit == "log" else [])]
    found: list[_Differences] = []
    for group in aggregate.grouped(runs, lambda run: aggregate.place_without(run, *common)):
        choices: dict[str, list[aggregate.MeasuredRun]] = {}
        for run in group.runs:
            choices.setdefault(run.axes.get(chosen.axis, ""), []).append(run)
        for one, two in combinations(choices, 2):
            if chosen.name in ("", one, two):
                both = aggregate.Group(group.axes, [*choices[one], *choices[two]])
                if not both.unstable:
                    found += _differences(both, metrics, chosen.axis, (one, two), own, unit)
    kept = _kept(found) if unit == "part" else {}
    compared = [each.compared(kept.get(each.series, 0.0), own, unit) for each in found]
    raised = holm([each.paired.p_value for each in compared])
    return [
        replace(each, p_value=p_value, nb_tests=len(found))
        for each, p_value in zip(compared, raised, strict=True)
    ]


class _Differences(Struct, frozen=True):
    """Of two choices in a metric, one for each unit."""

    where: dict[str, str]
    metric: str
    names: tuple[str, str]
    values: list[float]
    """The first less the second."""

    @property
    def series(self) -> tuple[str, str]:
        """The log that both have in common, if that is told, and the metric."""
        return self.where.get("log", ""), self.metric

    def compared(self, kept: float, own: Own, unit: str) -> Comparison:
        """Which of both is better, if each unit keeps so much of the one before."""
        column, paired = column_of(self.metric, own), Paired.of(self.values, kept)
        better, worse = self.names
        if (paired.difference.mean > 0) != (column.better == "higher"):
            worse, better = self.names
        return Comparison(self.where, self.metric, column.unit, better, worse, paired, unit)


def _kept(found: Sequence[_Differences]) -> dict[tuple[str, str], float]:
    """How much parts of each log keep of the one before, as all comparisons of it in a metric show."""
    series: dict[tuple[str, str], list[list[float]]] = {}
    for each in found:
        series.setdefault(each.series, []).append(each.values)
    return {place: kept_of(values) for place, values in series.items()}


#: How many differences, and how many pairs without one, are named for a metric.
_MOST_NAMED = 4

#: Of how many metrics of a plan is told first what was found.
_FIRST_METRICS = 2


def findings(compared: Sequence[Comparison], metrics: Sequence[str]) -> Iterator[str]:
    """What was found, in a few sentences: what differs by how much, the surest first, and what does not."""
    if not compared:
        yield (
            "Nothing was repeated often enough, in a steady state, to be told apart by a test: the table "
            "below has means, which chance may have ordered."
        )
    known = [metric for metric in metrics if any(each.metric == metric for each in compared)]
    for metric in known[:_FIRST_METRICS]:
        ours = [each for each in compared if each.metric == metric]
        shown = sorted((each for each in ours if each.is_shown), key=lambda each: each.p_value)
        same = [each for each in ours if not each.is_shown]
        if shown:
            told = "; ".join(
                f"{each.better} is better than {each.worse} by {each.amount} ({each.common})"
                for each in shown[:_MOST_NAMED]
            )
            yield f"{metric} differs in {len(shown)} of {len(ours)} comparisons: {told}{_more(shown)}."
        if same:
            told = "; ".join(f"{each.better} and {each.worse} ({each.common})" for each in same[:_MOST_NAMED])
            yield f"{metric}: no difference is shown between {told}{_more(same)}."


def _more(named: Sequence[Comparison]) -> str:
    return f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""


def _differences(
    both: aggregate.Group[aggregate.MeasuredRun],
    metrics: Sequence[str],
    axis: str,
    names: tuple[str, str],
    own: Own,
    unit: str,
) -> Iterator[_Differences]:
    """The differences in each metric of which one can be better, where there are enough units in common."""
    partners = aggregate.partners_of(both.runs, aggregate.Baseline(names[1], axis))
    mine = [run for run in both.runs if run.axes.get(axis, "") == names[0]]
    for metric in metrics:
        if column_of(metric, own).better != "neither":
            values = aggregate.differences_of(aggregate.pairs_of(metric, mine, partners), unit)
            if len(values) >= FEWEST and not isnan(sum(values)):
                yield _Differences(both.axes, metric, names, values)


def comparable_rows(rows: Sequence[Mapping[str, str]]) -> list[int]:
    """For rows with these places on the axes, a number each: the same if they differ in who decides only.

    >>> comparable_rows([{"log": "a", "scheduler": "x"}, {"log": "b"}, {"log": "a", "scheduler": "y"}])
    [0, 1, 0]
    """
    known: dict[tuple[tuple[str, str], ...], int] = {}
    places = (tuple((axis, name) for axis, name in row.items() if axis not in DECIDING) for row in rows)
    return [known.setdefault(place, len(known)) for place in places]


def best_rows(metric: str, results: aggregate.Aggregate) -> set[int]:
    """The rows with the best mean of those they can be compared with, and all that cannot be told from it.

    Comparable are rows that differ in who decides only, not in their log, load, machine or users. Where there
    are too few units to tell, the best mean alone counts. Rows without a steady state do not.
    """
    better = column_of(metric, results.own).better
    if better == "neither":
        return set()
    comparable = comparable_rows([group.axes for group, _ in results.rows])
    rivals: dict[int, dict[int, float]] = {}
    for number, (group, measured) in enumerate(results.rows):
        mean = measured[metric].estimate.mean
        if not isnan(mean) and not group.unstable:
            rivals.setdefault(comparable[number], {})[number] = mean
    best: set[int] = set()
    for means in rivals.values():
        if len(set(means.values())) > 1:
            first = (max if better == "higher" else min)(means, key=lambda number: means[number])
            best |= _not_told_from(first, [number for number in means if number != first], metric, results)
            best |= {number for number, mean in means.items() if mean == means[first]}
    return best


def _not_told_from(first: int, others: Sequence[int], metric: str, results: aggregate.Aggregate) -> set[int]:
    """A row, and those of the others that Holm's method over all of them cannot tell from it."""
    found: dict[int, list[float]] = {}
    if not results.pooled:
        for number in others:
            pair = results.rows[first][0], results.rows[number][0]
            values = _between_rows(*pair, metric, results.unit)
            if len(values) >= FEWEST:
                found[number] = values
    kept = kept_of([*found.values()]) if results.unit == "part" else 0.0
    raised = holm([Paired.of(values, kept).p_value for values in found.values()])
    return {first} | {number for number, p in zip(found, raised, strict=True) if p >= SIGNIFICANT}


def _between_rows(
    one: aggregate.Group[aggregate.MeasuredRun],
    two: aggregate.Group[aggregate.MeasuredRun],
    metric: str,
    unit: str,
) -> list[float]:
    """The difference of two rows, unit by unit; what does not depend on chance is the same for every seed."""
    mine, its = one.by_unit(metric, unit), two.by_unit(metric, unit)
    pairs = [(mine.get(each, mine.get("")), its.get(each, its.get(""))) for each in mine | its if each]
    return [first - second for first, second in pairs if first is not None and second is not None]


def comparisons_markdown(comparisons: Sequence[Comparison]) -> str:
    """The comparisons in Markdown, if there are any."""
    if not comparisons:
        return ""
    lines = ["### Compared in pairs", "", *(f"- {comparison}" for comparison in comparisons), ""]
    return "\n" + "\n".join(lines)
