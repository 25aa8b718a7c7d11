"""What is learned of sizes and run times, piece by piece, with numbers that were worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from batsched_py.workload.description.jobs import Bags
from batsched_py.workload.models import shapes as sh
from batsched_py.workload.models.minh_wolters import Naive, NaiveParameters
from batsched_py.workload.models.shapes import Cluster, Mixture, Pairs, Shapes, Sizes, Spread
from tests.logs import log_of

DAY = 86400.0
NOTHING = Sizes([], [])
NO_PAIRS = Pairs([], [], [])


def mixture(*clusters: tuple[float, float, float], scale: sh.Scale = "linear") -> Mixture:
    """Clusters by weight, mean and deviation, of run times from 10 to 1000 s."""
    weights, means, deviations = map(list, zip(*clusters, strict=True))
    return Mixture(scale, weights, means, deviations, 10.0, 1000.0)


def shapes(**given: object) -> Shapes:
    """Nothing but bags of one job of one processor that takes 100 s, unless said otherwise."""
    known = {
        "mixture": mixture((1.0, 100.0, 1.0)),
        "sizes": [Sizes([1], [10]), *[NOTHING] * 9],
        "pairs": [Pairs([0], [1], [10]), *[NO_PAIRS] * 9],
        "clusters": [Cluster(0.0, 0.0, 0.0)],
        "spread": Spread([[]] * 12, [[]] * 12),
        "longest": [500.0, 600.0, 700.0],
    }
    return Shapes(**known | given)


def alone(count: int) -> Bags:
    return Bags(np.arange(count), np.ones(count, dtype=np.int64))


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_run_times_come_from_the_cluster_that_is_likeliest() -> None:
    narrow_and_wide = mixture((0.5, 100.0, 1.0), (0.5, 100.0, 50.0))
    assert narrow_and_wide.likeliest(np.array([100.0, 101.0, 103.0, 60.0])).tolist() == [0, 0, 1, 1]
    rare_and_frequent = mixture((0.001, 100.0, 10.0), (0.999, 130.0, 10.0))
    assert rare_and_frequent.likeliest(np.array([90.0, 100.0, 115.0])).tolist() == [0, 1, 1]


def test_a_run_time_between_two_clusters_is_counted_to_either_by_its_chances() -> None:
    between = mixture((0.75, 100.0, 10.0), (0.25, 120.0, 10.0))
    drawn = between.sampled(np.full(20_000, 110.0), rng())
    assert np.bincount(drawn) / 20_000 == pytest.approx([0.75, 0.25], abs=0.02)


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_run_times_beyond_the_ends_are_mirrored(scale: sh.Scale) -> None:
    of = mixture((1.0, 1.0, 1.0), scale=scale)
    values = of.to_scale(np.array([15.0, 6.25, 1250.0, 1e9]))
    mirrored = [15, 14, 750, 1000] if scale == "linear" else [15, 16, 800, 1000]
    assert of.from_scale(values).tolist() == mirrored
    assert of.from_scale(values[:1], np.array([14.0])).tolist() == [13]


def test_less_than_the_middle_of_half_a_second_and_a_second_is_no_second() -> None:
    short = Mixture("log", [1.0], [0.0], [1.0], 0.0, 1000.0)
    assert short.from_scale(np.log([0.5, 0.7, 0.72, 1.4, 1.6])).tolist() == [0, 0, 1, 1, 2]


def test_classes_of_bags() -> None:
    sizes = np.array([1, 2, 3, 4, 7, 8, 511, 512, 100_000])
    assert sh.bag_classes(sizes).tolist() == [0, 1, 1, 2, 2, 3, 8, 9, 9]
    large = sh.is_large(Bags(np.arange(24), np.array([7, 8, 9])))
    assert large.tolist() == [False, True, True]
    means = np.array([5.0, 5.0, 50.0, 50.0, 0.0, 1e9, 99_999.0, 100_000.0])
    assert sh._classes(means, np.array([1, 2, 3, 4, 2, 4, 2, 2])).tolist() == [-1, 0, 1, 7, 0, 11, 4, 5]


def test_classes_of_programs_go_by_the_jobs_of_a_day_on_which_they_are_run() -> None:
    bags = Bags(np.arange(12), np.array([1, 2, 4, 5]))
    submit = np.array([0.0, *[10.0] * 2, *[DAY + 1] * 4, *[3 * DAY] * 5])
    programs = np.array([0, 0, 0, 1])
    assert sh.program_classes(programs, bags, submit).tolist() == [1, 2]  # 7 jobs on 2 days, 5 on 1


def test_pairs_and_sizes_are_counted() -> None:
    clusters, sizes = np.array([1, 0, 1, 1]), np.array([2, 4, 2, 1])
    assert sh.count_pairs(clusters, sizes) == Pairs([0, 1, 1], [4, 1, 2], [1, 1, 2])
    assert sh.count_pairs(clusters, sizes, np.array([1, 2, 3, 4])).counts == [2, 4, 4]
    assert sh._sizes(sizes, np.array([1, 2, 3, 4])) == Sizes([1, 2, 4], [4, 4, 2])


def test_how_run_times_grow_with_size_is_a_straight_line() -> None:
    sizes = np.array([1, 1, 4, 4])
    values = 5 + 3 * np.log(sizes) + np.array([1, -1, 1, -1])
    found = sh._cluster(values, sizes, 7.0)
    assert found.slope == pytest.approx(3)
    assert found.centre == pytest.approx(np.log(2))
    assert found.deviation == pytest.approx((5 + 3 * np.log(2) + 0 * values + np.array([1, -1, 1, -1])).std())
    assert sh._cluster(values[:2], sizes[:2], 7.0) == Cluster(0.0, 0.0, 7.0)
    assert sh._cluster(np.array([1.0, 2.0, 3.0]), np.array([2, 2, 2]), 7.0) == Cluster(0.0, 0.0, 7.0)
    assert sh._cluster(np.array([1.0, 2.0, 3.0]), np.array([1, 2, 4]), 7.0).slope == pytest.approx(
        1 / np.log(2)
    )


def test_the_largest_of_each_group_and_the_place_of_each_value() -> None:
    groups = np.array([0, 2, 2, 0, 2, 2])
    values = np.array([5.0, 1.0, 9.0, -1.0, 3.0, 2.0])
    assert sh.largest_of(groups, values).tolist() == [5, 0, 9]
    assert sh.ranks_within(groups, values).tolist() == [0.5, 0.0, 0.75, 0.0, 0.5, 0.25]
    assert sh.shares_of(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_the_longest_run_time_of_each_class_of_sizes_is_a_second_at_least() -> None:
    log = log_of(submit=[0, 1, 2], run_time=[0, 90, 50], requested_processors=[1, 2, 3])
    learned = sh.fit_shapes(log, alone(3), np.arange(3), mixture((1.0, 50.0, 10.0)))
    assert learned.longest == [1.0, 90.0]


def test_quantiles_are_drawn_evenly() -> None:
    quantiles = sh._quantiles(np.arange(48.0))
    assert quantiles == pytest.approx(np.arange(48) / 48 * 47 + 47 / 96, abs=1e-4)
    drawn = np.sort(sh._drawn([0.0, 10.0, 20.0, 30.0], 4000, rng()))
    assert np.histogram(drawn, [-1, 5, 15, 25, 31])[0].tolist() == pytest.approx([1000] * 4, abs=2)
    assert (drawn == 0).sum() == pytest.approx(500, abs=2)
    assert (drawn == 30).sum() == pytest.approx(500, abs=2)
    assert sh._drawn([], 3, rng()).tolist() == [0, 0, 0]


def test_how_wide_bags_are_and_how_their_jobs_deviate() -> None:
    bags = Bags(np.arange(5), np.array([1, 2, 2]))
    run_times = np.array([7.0, 20.0, 60.0, 30.0, 30.0])  # means 7, 40 and 30
    spread = sh.fit_spread(run_times, bags)
    low, high = np.log(20 / 40), np.log(60 / 40)
    width = (abs(low) + high) / 2
    assert [len(each) for each in spread.widths] == [0, 48, *[0] * 10]
    assert spread.widths[1][0] == pytest.approx(width / 96, abs=1e-4)
    assert spread.widths[1][-1] == pytest.approx(width * 95 / 96, abs=1e-4)
    step = (high - low) / width / 96
    assert spread.deviations[1][0] == pytest.approx(low / width + step, abs=1e-4)
    assert spread.deviations[1][-1] == pytest.approx(high / width - step, abs=1e-4)


def test_jobs_deviate_within_bags_of_two_or_more_only_and_the_mean_stays() -> None:
    wide = Spread([[], [0.5], *[[]] * 10], [[], [-1.0, 1.0], *[[]] * 10])
    bags = Bags(np.arange(5), np.array([1, 2, 2]))
    means = np.array([50.0, 50.0, 500.0])
    found = sh.spread_out(wide, means, bags, rng())
    assert found[[0, 3, 4]].tolist() == [50, 500, 500]
    assert found[1:3].mean() == pytest.approx(50)
    assert abs(np.log(found[1] / found[2])) <= 1.0
    assert found[1] != found[2]


def test_sizes_are_dealt_out_as_often_as_the_log_has_them() -> None:
    known = shapes(sizes=[Sizes([1, 8], [30, 10]), *[NOTHING] * 9])
    bags = alone(40)
    places = np.linspace(0, 1, 40, endpoint=False)
    sizes = sh.draw_sizes(known, np.arange(40), bags, np.zeros(40), places)
    assert np.bincount(sizes)[[1, 8]].tolist() == pytest.approx([30, 10], abs=1)
    table_sizes, table = sh._sizes_by_class(known, np.array([20.0, *[0.0] * 9]))
    assert table_sizes.tolist() == [1, 8]
    assert table[0] == pytest.approx([15, 5])


def test_each_class_of_programs_has_sizes_of_its_own() -> None:
    """Half of the jobs are in bags of two; sizes of 4 are in these only, but for the share of the prior."""
    known = shapes(sizes=[Sizes([1], [1000]), Sizes([4], [1000]), *[NOTHING] * 8])
    _, table = sh._sizes_by_class(known, np.array([100.0, 100.0, *[0.0] * 8]))
    assert table[:2].sum(axis=0) == pytest.approx([100, 100])
    assert table[0, 0] == pytest.approx(100, abs=0.2)
    assert table[1, 1] == pytest.approx(100, abs=0.2)
    assert 0 < table[0, 1] < 0.2


def test_a_size_of_which_too_few_are_left_is_not_taken() -> None:
    """A program of four jobs takes a size of which four are left; one of three, then, any of three."""
    known = shapes(sizes=[NOTHING, NOTHING, Sizes([1, 2, 4], [1, 5, 2]), *[NOTHING] * 7])
    for place in (0.0, 0.5, 0.999):
        bags = Bags(np.arange(8), np.array([4, 4]))
        sizes = sh.draw_sizes(known, np.array([0, 0]), bags, np.array([0.0, DAY] * 4), np.array([place]))
        assert sizes.tolist() == [2]  # no size has 8, so the one of which most is left
        bags = Bags(np.arange(4), np.array([4]))
        sizes = sh.draw_sizes(
            shapes(sizes=[NOTHING, NOTHING, Sizes([1, 2, 4], [25, 100, 5]), *[NOTHING] * 7]),
            np.arange(30),
            Bags(np.arange(120), np.full(30, 4)),
            np.zeros(120),
            np.full(30, place),
        )
        assert (np.bincount(sizes, minlength=5)[[1, 2, 4]] * 4 <= np.array([24, 96, 8])).all()


def test_clusters_are_dealt_out_in_proportion() -> None:
    found = sh._clusters(np.array([[1.0, 3.0], [1.0, 0.0]]), np.array([8, 3]), rng())
    assert np.bincount(found[:8]).tolist() == [2, 6]
    assert found[8:].tolist() == [0, 0, 0]


def test_clusters_of_classes_and_sizes_are_those_of_the_log() -> None:
    two = mixture((0.5, 50.0, 1.0), (0.5, 200.0, 1.0))
    known = shapes(
        mixture=two,
        clusters=[Cluster(0.0, 0.0, 0.0)] * 2,
        pairs=[Pairs([0, 1], [1, 1], [900, 100]), Pairs([0, 1], [1, 2], [100, 900]), *[NO_PAIRS] * 8],
    )
    shares = sh._raked(known, np.array([0, 1, 1]), np.array([1, 1, 2]), np.array([1000.0, 100.0, 900.0]))
    assert shares[0] == pytest.approx([0.9, 0.1], abs=0.01)
    assert shares[1] == pytest.approx([1.0, 0.0], abs=0.01)
    assert shares[2] == pytest.approx([0.0, 1.0], abs=0.01)


def test_run_times_follow_the_line_of_their_cluster_up_to_the_longest() -> None:
    line = shapes(clusters=[Cluster(100.0, 0.0, 0.0)], longest=[500.0, 150.0, 220.0])
    found = sh._run_times(line, np.zeros(3, dtype=np.int64), np.array([1, 2, 4]), rng())
    beyond = 100 + 100 * np.log([2, 4])  # mirrored at 150 and at 220
    assert found.tolist() == [100, round(2 * 150 - beyond[0]), round(2 * 220 - beyond[1])]
    line.stretch = [2.0, 0.5, 3.0]
    found = sh._run_times(line, np.zeros(3, dtype=np.int64), np.array([1, 2, 4]), rng())
    assert found.tolist() == [200, round(2 * 150 - beyond[0]) / 2, 220]


def test_means_are_given_out_in_the_order_of_hidden_values() -> None:
    two = mixture((0.5, 50.0, 1.0), (0.5, 200.0, 1.0))
    known = shapes(
        mixture=two,
        clusters=[Cluster(0.0, 0.0, 0.0)] * 2,
        pairs=[Pairs([0, 1], [1, 1], [10, 10]), *[NO_PAIRS] * 9],
    )
    means = sh.Means(known, alone(40), np.ones(40, dtype=np.int64), rng())
    values = np.random.default_rng(2).permutation(40).astype(float)
    found = means.by(values)[np.argsort(values)].tolist()
    assert found == [50.0] * 20 + [200.0] * 20


def test_sizes_whose_run_times_lack_work_are_stretched() -> None:
    known = shapes(longest=[1.0, 1.0, 1.0])
    run_times, sizes = np.array([100.0, 300.0, 50.0, 70.0]), np.array([1, 1, 2, 4])
    trial = {"requested_processors": np.array([1, 2, 2]), "run_time": np.array([100.0, 400.0, 400.0])}
    assert sh.stretched(known, run_times, sizes, trial, 1.0) == [2.0, 0.5, 1.0]
    assert sh.stretched(known, run_times, sizes, trial, 0.5) == pytest.approx(
        [2**0.5, 0.125**0.5 * 2**0.5, 1]
    )
    known.stretch = [0.6, 1.5, 1.2]
    assert sh.stretched(known, run_times, sizes, trial, 1.0) == pytest.approx([1.2, 0.5, 1.2])


def test_run_times_of_a_bag_are_whole_seconds_between_the_shortest_and_the_longest() -> None:
    bags = Bags(np.arange(4), np.array([1, 1, 1, 1]))
    means, sizes = np.array([3.0, 99.6, 900.0, 900.0]), np.array([1, 1, 1, 4])
    assert sh.draw_run_times(shapes(), means, sizes, bags, rng()).tolist() == [10, 100, 500, 700]


def test_requests_are_learned_by_classes_of_run_time() -> None:
    """Two classes an octave: 60 s is in floor(2 * log2(60)) = 11, 100 s in 13; -1 is no request."""
    learned = sh.fit_requests(np.array([60.0, 60.0, 100.0, 0.5]), np.array([600.0, 0.0, 600.0, 60.0]))
    assert learned == sh.Requests([0, 11, 11, 13], [60.0, -1.0, 600.0, 600.0], [1, 1, 1, 1])


def test_requests_are_drawn_from_the_nearest_class() -> None:
    learned = sh.Requests([11, 11, 20], [-1.0, 600.0, 7200.0], [1, 3, 5])
    near = sh.draw_requests(learned, np.full(8000, 60.0), rng())
    assert np.unique(near).tolist() == [-1.0, 600.0]
    assert np.mean(near == 600) == pytest.approx(0.75, abs=0.02)
    assert sh.draw_requests(learned, np.array([1500.0, 8000.0]), rng()).tolist() == [7200.0, 10_800.0]
    assert sh.draw_requests(sh.Requests([3], [-1.0], [4]), np.array([5.0]), rng()).tolist() == [-1.0]


def test_a_request_is_not_below_the_run_time() -> None:
    times, weights = np.array([60.0, 600.0, 3600.0]), np.array([2, 1, 1])
    drawn = sh.at_least(np.full(8000, 61.0), times, weights, rng())
    assert np.mean(drawn == 600) == pytest.approx(0.5, abs=0.02)
    assert np.unique(drawn).tolist() == [600, 3600]
    drawn = sh.at_least(np.full(8000, 60.0), times, weights, rng())
    assert np.mean(drawn == 60) == pytest.approx(0.5, abs=0.02)
    assert sh.at_least(np.array([3600.0, 3601.0]), times, weights, rng()).tolist() == [3600, 7200]


def test_the_naive_model_draws_evenly() -> None:
    learned = NaiveParameters(source="", machine=8, interarrival=100.0, longest=4.0, largest=3)
    drawn = Naive().draw(learned, 12_000, rng())
    assert np.bincount(drawn["run_time"].astype(int)).tolist() == pytest.approx([0, *[3000] * 4], abs=250)
    assert np.bincount(drawn["requested_processors"]).tolist() == pytest.approx([0, *[4000] * 3], abs=300)
    assert np.diff(drawn["submit"]).mean() == pytest.approx(100, rel=0.05)
    assert drawn["user"].tolist() == list(range(1, 12_001))


def test_a_mixture_has_as_many_clusters_as_there_are_in_ascending_order() -> None:
    run_times = np.concatenate([rng().lognormal(8, 0.3, 400), rng().lognormal(3, 0.2, 600)])
    found = sh.fit_mixture(run_times, "log")
    assert found.weights == pytest.approx([0.6, 0.4], abs=0.02)
    assert found.means == pytest.approx([3, 8], abs=0.05)
    assert found.deviations == pytest.approx([0.2, 0.3], rel=0.15)
    assert (found.least, found.most) == (run_times.min(), run_times.max())
    assert all(before < after for before, after in pairwise(found.means))
