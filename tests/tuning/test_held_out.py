"""What is told of settings that were found: gains, tests, warnings, who gains and who loses."""

from __future__ import annotations

from math import log

import pytest

from batsched_py.analysis.runs import Paired
from batsched_py.tuning.held_out import compared, groups_of, warnings_of
from batsched_py.tuning.space import Objective
from batsched_py.tuning.trials import Trial

SLOWDOWN = Objective.parse("mean_bounded_slowdown")


def trial(values: list[float | None], waits: dict[str, tuple[int, float]] | None = None) -> Trial:
    rows = {str(number): [value] for number, value in enumerate(values)}
    groups = {} if waits is None else {part: {"class": waits} for part in rows}
    return Trial(study="", settings={}, state="whole", values=rows, waits=groups)


def test_a_gain_is_the_geometric_mean_of_ratios() -> None:
    ((found,),) = compared(
        [SLOWDOWN], trial([10, 100, 20]), [trial([5, 50, 12])], trial([8, 8]), [trial([4, 4])]
    )
    assert found.gain == pytest.approx(1 - (0.5 * 0.5 * 0.6) ** (1 / 3))
    assert found.low is not None and found.high is not None and found.low < found.gain < found.high
    assert found.p_value == Paired.of([log(0.5), log(0.5), log(0.6)]).p_value == found.holm_p_value
    assert found.search_gain == pytest.approx(0.5)
    assert (found.today, found.found, found.holds) == (pytest.approx(130 / 3), pytest.approx(67 / 3), True)
    assert warnings_of([[found]]) == []


def test_all_comparisons_are_corrected_together() -> None:
    today, found = trial([10, 100, 20]), trial([5, 50, 12])
    rows = compared([SLOWDOWN], today, [found, found], today, [found, found])
    assert rows[0][0].p_value is not None
    assert rows[0][0].holm_p_value == rows[1][0].holm_p_value == pytest.approx(2 * rows[0][0].p_value)


def test_it_is_told_when_nothing_holds_and_when_search_and_held_out_parts_disagree() -> None:
    ((found,),) = compared(
        [SLOWDOWN], trial([10, 10, 10, 10]), [trial([5, 20, 9, 12])], trial([8, 8]), [trial([2, 2])]
    )
    said = " ".join(warnings_of([[found]]))
    assert "Nothing was found that is shown to be better" in said
    assert "search and held-out parts disagree: 75.0% better in the search, 1.9% worse" in said
    assert not found.holds


def test_parts_without_a_value_are_left_out_and_too_few_are_not_tested() -> None:
    ((found,),) = compared([SLOWDOWN], trial([10, None, 10]), [trial([5, 5, 5])], trial([8]), [trial([4])])
    assert (found.nb_parts, found.p_value, found.holds) == (2, None, False)
    assert "2 held-out parts are too few for a test" in " ".join(warnings_of([[found]]))


def test_more_may_be_better() -> None:
    utilization = Objective.parse("utilization")
    ((found,),) = compared(
        [utilization], trial([0.5, 0.5, 0.6]), [trial([0.7, 0.8, 0.8])], trial([0.5]), [trial([0.7])]
    )
    assert found.gain is not None and found.gain > 0.3 and found.holds


def test_who_gains_and_who_loses() -> None:
    before = trial([1, 1, 1], {"short": (2, 200.0), "long": (1, 10.0)})
    after = trial([1, 1, 1], {"short": (2, 100.0), "long": (1, 30.0)})
    found = {group.name: group for group in groups_of(before, after)}
    assert {name: group.verdict for name, group in found.items()} == {"short": "gains", "long": "loses"}
    assert (found["short"].jobs, found["short"].today, found["short"].found) == (6, 100.0, 50.0)
