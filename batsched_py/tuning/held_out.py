"""What was found, compared with today's settings on the parts of the log that the search has not seen."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, isnan, log, sqrt
from statistics import fmean

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs import FEWEST, SIGNIFICANT, Estimate, Paired, holm, lag_1
from batsched_py.tuning.space import Objective
from batsched_py.tuning.trials import Trial, mean

#: A gain on held-out parts that is below this share of the gain in the search is told.
SHARE_THAT_HOLDS = 0.5

#: So many users are listed who gain most, and who lose most, of those of whom it is shown.
MOST_USERS = 5

#: What is said of a group whose interval has 0 in it.
UNCLEAR = "unclear"


class Compared(Struct, frozen=True, kw_only=True):
    """Settings that were found beside today's, by one objective, over the parts that are held out."""

    objective: str
    unit: str
    today: float
    """The mean over the parts."""
    found: float
    nb_parts: int
    gain: float | None = None
    """By which share the objective is better, by the geometric mean over parts, where that has a sense."""
    low: float | None = None
    high: float | None = None
    """The ends of the 95 % interval of the gain."""
    difference: Estimate
    """The found settings less today's."""
    p_value: float | None = None
    """Of Student's t-test of pairs, on logarithms of ratios where there is a gain, else on differences."""
    sign_p_value: float | None = None
    """Of the sign test."""
    holm_p_value: float | None = None
    """The first one, raised for all comparisons of the search by Holm's method."""
    search_today: float
    search_found: float
    """The same means over the parts of the search."""
    search_gain: float | None = None
    is_better: bool
    """Whether both the mean and the gain are better, whether by chance or not."""
    autocorrelation: float | None = None
    """Of the differences of successive parts."""

    @property
    def holds(self) -> bool:
        """Whether it is shown that the found settings are better."""
        return self.is_better and self.holm_p_value is not None and self.holm_p_value < SIGNIFICANT


class Group(Struct, frozen=True, kw_only=True):
    """How long the jobs of a group wait, today and with what was found, in the mean over parts."""

    kind: str
    name: str
    jobs: int
    """How many there are in all parts that are held out."""
    today: float
    found: float
    difference: Estimate
    verdict: str


def compared(
    objectives: Sequence[Objective],
    today: Trial,
    found: Sequence[Trial],
    search_today: Trial,
    search_found: Sequence[Trial],
) -> list[list[Compared]]:
    """For each of the found settings a comparison by each objective, all of them corrected together."""
    rows = [
        [_compared(place, each, today, one, search_today, its) for place, each in enumerate(objectives)]
        for one, its in zip(found, search_found, strict=True)
    ]
    known = [each.p_value for row in rows for each in row if each.p_value is not None]
    raised = iter(holm(known))
    return [
        [each if each.p_value is None else _with_holm(each, next(raised)) for each in row] for row in rows
    ]


def _with_holm(compared: Compared, p_value: float) -> Compared:
    return replace(compared, holm_p_value=p_value)


def _compared(
    place: int, objective: Objective, today: Trial, found: Trial, search_today: Trial, search_found: Trial
) -> Compared:
    pairs = list(_pairs(today, found, place))
    differences = [its - mine for mine, its in pairs]
    paired = Paired.of(differences) if len(pairs) >= FEWEST else None
    p_value, sign_p = (None, None) if paired is None else (paired.p_value, paired.sign_p_value)
    gain, low, high, better = None, None, None, True
    has_ratios = objective.positive and bool(pairs) and all(mine > 0 and its > 0 for mine, its in pairs)
    if has_ratios:
        ratios = [log(its / mine) for mine, its in pairs]
        estimate = Estimate.of(ratios)
        ends = [_gain(end, objective) for end in (estimate.low, estimate.high) if end is not None]
        gain = _gain(estimate.mean, objective)
        low, high = (min(ends), max(ends)) if ends else (None, None)
        better = gain > 0
        p_value = Paired.of(ratios).p_value if len(pairs) >= FEWEST else None
    before, after = mean([mine for mine, _ in pairs]), mean([its for _, its in pairs])
    first, then = search_today.means()[place], search_found.means()[place]
    return Compared(
        objective=objective.text,
        unit=objective.unit,
        today=before,
        found=after,
        nb_parts=len(pairs),
        gain=gain,
        low=low,
        high=high,
        difference=Estimate.of(differences),
        p_value=p_value,
        sign_p_value=sign_p,
        search_today=first,
        search_found=then,
        search_gain=_search_gain(search_today, search_found, place, objective),
        is_better=better and objective.sign * (after - before) < 0,
        autocorrelation=lag_1(differences),
    )


def _pairs(today: Trial, found: Trial, place: int) -> Iterator[tuple[float, float]]:
    for part, row in today.values.items():
        mine, its = row[place], found.values[part][place]
        if mine is not None and its is not None:
            yield mine, its


def _gain(ratio: float, objective: Objective) -> float:
    """The share that is saved, or won, by the logarithm of a ratio."""
    return -objective.sign * (exp(ratio) - 1)


def _search_gain(today: Trial, found: Trial, place: int, objective: Objective) -> float | None:
    pairs = list(_pairs(today, found, place))
    if not (objective.positive and pairs and all(mine > 0 and its > 0 for mine, its in pairs)):
        return None
    return _gain(fmean(log(its / mine) for mine, its in pairs), objective)


def warnings_of(rows: Sequence[Sequence[Compared]]) -> list[str]:
    """What a reader must know before anything else."""
    said: list[str] = []
    if not any(each.holds for row in rows for each in row):
        said.append(
            "Nothing was found that is shown to be better on the parts that were held out. Keep today's "
            "settings, or search on more parts."
        )
    for number, row in enumerate(rows, start=1):
        for each in row:
            name = f"{each.objective}, settings {number}" if len(rows) > 1 else each.objective
            said += _warnings_of_one(name, each)
    return said


def _warnings_of_one(name: str, each: Compared) -> Iterator[str]:
    if each.search_gain is not None and each.gain is not None and each.search_gain > 0:
        share = each.gain / each.search_gain
        if share < SHARE_THAT_HOLDS:
            which = "worse" if each.gain < 0 else "better"
            yield (
                f"{name}: search and held-out parts disagree: {each.search_gain:.1%} better in the search, "
                f"{abs(each.gain):.1%} {which} on what was held out. The settings may fit the parts of the "
                "search only."
            )
    if each.search_gain is not None and each.search_gain <= 0:
        yield f"{name}: no settings were better than today's on the parts of the search."
    if each.nb_parts < FEWEST:
        yield f"{name}: {each.nb_parts} held-out parts are too few for a test; it takes {FEWEST}."
    lag = each.autocorrelation
    if lag is not None and lag > 2 / sqrt(each.nb_parts):
        yield (
            f"{name}: the differences of successive parts are alike (autocorrelation {lag:.2f}), so the "
            "interval is too narrow; make the parts longer."
        )


def groups_of(today: Trial, found: Trial) -> list[Group]:
    """Who gains and who loses: the classes of jobs, and the users for whom most changes."""
    made: list[Group] = []
    for kind in ("class", "user"):
        names = dict.fromkeys(name for waits in today.waits.values() for name in waits.get(kind, {}))
        groups = [group for name in names if (group := _group(kind, name, today, found)) is not None]
        if kind == "user":
            groups = [group for group in groups if group.verdict != UNCLEAR]
            groups.sort(key=lambda group: (group.difference.mean, group.name))
            most = MOST_USERS
            groups = groups if len(groups) <= 2 * most else [*groups[:most], *groups[-most:]]
        made += groups
    return made


def _group(kind: str, name: str, today: Trial, found: Trial) -> Group | None:
    before, after, jobs = [], [], 0
    for part, waits in today.waits.items():
        mine = waits.get(kind, {}).get(name)
        its = _waits(found.waits, part, kind).get(name)
        if mine and its and mine[0] and its[0]:
            before.append(mine[1] / mine[0])
            after.append(its[1] / its[0])
            jobs += mine[0]
    if not before:
        return None
    difference = Estimate.of([its - mine for mine, its in zip(before, after, strict=True)])
    return Group(
        kind=kind,
        name=name,
        jobs=jobs,
        today=fmean(before),
        found=fmean(after),
        difference=difference,
        verdict=_verdict(difference),
    )


def _waits(
    waits: Mapping[str, Mapping[str, Mapping[str, tuple[int, float]]]], part: str, kind: str
) -> Mapping[str, tuple[int, float]]:
    return waits.get(part, {}).get(kind, {})


def _verdict(difference: Estimate) -> str:
    if difference.low is None or difference.high is None or isnan(difference.mean):
        return UNCLEAR
    if difference.high < 0:
        return "gains"
    return "loses" if difference.low > 0 else UNCLEAR
