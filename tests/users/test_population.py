"""Populations made of the users of a log: who comes when, and that they are like the log."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.users import USERS
from batsched_py.users.population import WEEK, Pool, Rules, Turnover, shuffled
from batsched_py.users.resample import PopulationUser, Resample, resampled_log, unroll
from batsched_py.users.rigid import Rigid
from batsched_py.workload.swf.log import SwfLog, write_swf
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload
from tests.feedback import Record, replay, rows, submissions, workload_of
from tests.processes import call

DAY = 86400.0

#: Two-sample tests of a resampled log against the log fail below this chance.
LEAST_CHANCE = 0.01


def pool(weeks: int = 30) -> Pool:
    """Users 1 to 3 are there all the time, 4 to 30 for two weeks each, one after the other."""
    regular = [Record(user, week * WEEK + user * DAY, 60) for user in (1, 2, 3) for week in range(weeks)]
    others = [
        Record(4 + n, (n + stay) * WEEK + n * 3600, 60) for n in range(min(weeks - 1, 27)) for stay in (0, 1)
    ]
    log = sorted(regular + others, key=lambda record: record.submit)
    return Pool.of(workload_of(log), long_term_weeks=12, margin=1)


def test_a_load_for_which_there_are_too_few_users_is_refused_with_the_largest(root: Path) -> None:
    """At 46 temporary users a week, 50 are too few for a load of 1.5, which gave as many jobs as 3."""
    log = read_swf(root / "workloads" / "sample.swf")

    def jobs(**options: str) -> int:
        population = USERS.create("resample", {"weeks": "1", **options})
        assert isinstance(population, Resample)
        return len(resampled_log(log, population))

    for load in ("1.5", "2", "3", "1.09"):
        with pytest.raises(InputError, match=rf"^load {load}: .* too few .*; the largest load is 1\.08$"):
            jobs(load=load)
    assert jobs(load="0.5") < jobs(load="1") < jobs(load="1.08")
    assert jobs(load="1.5", long_term="2") < jobs(load="3", long_term="2")


def test_the_load_of_the_log_itself_is_never_refused() -> None:
    workload = workload_of([Record(1, 0, 1), Record(2, WEEK, 1)])
    assert unroll(Turnover(Pool.of(workload, 12, margin=1), Rules()), 2) == []
    with pytest.raises(InputError, match=r"the largest load is 1$"):
        Turnover(Pool.of(workload, 12, margin=1), Rules(load=1.1))


def test_long_term_users_are_those_with_activity_over_many_weeks() -> None:
    found = pool()
    assert [stream.user for stream in found.long_term] == ["1", "2", "3"]
    assert found.nb_weeks == 30
    assert found.arrivals == 27 / 30
    assert found.nb_temporary == 2 * 27 / 30


def test_users_who_were_there_only_when_the_log_began_or_ended_are_left_out() -> None:
    log = [Record(1, 0, 1), Record(2, WEEK, 1), Record(3, 2 * WEEK, 1)]
    assert [stream.user for stream in Pool.of(workload_of(log), 12, margin=1).temporary] == ["2"]


@pytest.mark.parametrize("seed", range(20))
def test_nobody_comes_twice_in_a_week_and_all_keep_weekday_and_time_of_day(seed: int) -> None:
    stays = unroll(Turnover(pool(), Rules(seed=seed, load=2)), 60)
    assert all(stay.shift % WEEK == 0 for stay in stays)
    arrivals = Counter((stay.week, stay.stream.user) for stay in stays if not stay.regular)
    assert set(arrivals.values()) == {1}


def test_long_term_users_start_over() -> None:
    stays = unroll(Turnover(pool(), Rules(seed=1, rest=0)), 100)
    mine = [stay for stay in stays if stay.stream.user == "2"]
    assert {later.week - before.last_week for before, later in pairwise(mine)} == {1}
    assert mine[0].week == 0
    assert all(stay.from_week == 0 for stay in mine[1:])


def test_long_term_users_begin_away_or_not() -> None:
    """Ten who were there for half of the log: about five of them begin, or all."""
    log = [Record(user, week * WEEK, 60) for week in range(15) for user in range(10)]
    half = Pool.of(workload_of([*log, Record(99, 29 * WEEK, 60)]), long_term_weeks=12, margin=1)
    there = [Turnover(half, Rules(seed=1, begin_active=active)).come(0) for active in (False, True)]
    assert [sum(stay.regular for stay in stays) for stays in there] == [5, 10]


def test_more_users_are_more_load() -> None:
    counts = [len(unroll(Turnover(pool(), Rules(seed=1, load=load)), 200)) for load in (1, 3)]
    assert 2.5 < counts[1] / counts[0] < 3.5


def test_chosen_users_come_more_often() -> None:
    stays = unroll(Turnover(pool(), Rules(seed=1, weights={"9": 20.0})), 200)
    counts = Counter(stay.stream.user for stay in stays if not stay.regular)
    assert counts.most_common(1)[0][0] == "9"
    with pytest.raises(InputError, match="there is no user 'x' in the log"):
        Turnover(pool(), Rules(weights={"x": 2.0}))


def test_the_population_does_not_depend_on_what_users_live_through() -> None:
    """Temporary users of later weeks are the same, even when long-term users are late."""
    turnovers = [Turnover(pool(), Rules(seed=4)) for _ in range(2)]
    for week in range(30):
        both = [
            [stay.stream.user for stay in turnover.come(week) if not stay.regular] for turnover in turnovers
        ]
        assert both[0] == both[1]


@pytest.mark.parametrize("shuffle", ["false", "true"])
def test_without_feedback_the_simulated_population_is_the_written_one(
    shuffle: str, sample_log: SwfLog
) -> None:
    options = {"weeks": "3", "seed": "5", "long_term": "3", "shuffle": shuffle}
    population = USERS.create("resample(rigid)", options)
    assert isinstance(population, Resample)
    written = resampled_log(sample_log, population)
    simulated = submissions(
        replay(population.users(swf_to_workload(sample_log)), hosts=10**4, scheduler="filler")
    )
    assert sorted(simulated.values()) == pytest.approx((written.submit - sample_log.submit.min()).tolist())


@pytest.mark.parametrize("shuffle", ["false", "true"])
def test_jobs_that_are_too_long_are_left_out(shuffle: str, sample_log: SwfLog) -> None:
    population = USERS.create("resample", {"longest": "0.5", "long_term": "3", "shuffle": shuffle})
    assert isinstance(population, Resample)
    written = resampled_log(sample_log, population)
    assert sample_log.run_time.max() > 1800 >= written.run_time.max() > 0
    with pytest.raises(InputError, match="no job runs for at most 1e-06 h"):
        USERS.create("resample", {"longest": "0.000001"}).users(workload_of([Record(1, 0, 60)]))


def test_jobs_that_are_shuffled_go_to_other_users_and_times() -> None:
    """Each job once, with its own wait and run time; who submits when stays as it was."""
    log = [Record(n % 3, 100 * n, 10 * n, size=1 + n, wait=n) for n in range(40)]
    before = workload_of(log)
    after = shuffled(before, seed=1)
    slots = [[(job.submission_time, job.user) for job in each.jobs] for each in (before, after)]
    assert slots[0] == slots[1]
    facts = [
        sorted(
            (job.id, job.size, job.profile, finish - job.submission_time)
            for job, finish in zip(each.jobs, each.finishes or (), strict=True)
        )
        for each in (before, after)
    ]
    assert facts[0] == facts[1]
    moved = sum(one.id != other.id for one, other in zip(before.jobs, after.jobs, strict=True))
    assert moved > 30


@pytest.fixture
def sample_log() -> SwfLog:
    return read_swf(Path(__file__).parents[2] / "workloads" / "sample.swf")


def test_users_who_have_left_are_forgotten() -> None:
    """After twenty years no more are known than after one."""
    known = []
    for weeks in (52, 1040):
        users = PopulationUser("w0", Turnover(pool(), Rules(seed=1)), Rigid(), weeks)
        most = 0
        jobs: list[str] = []
        while users.next_time() < weeks * WEEK:
            now = users.next_time()
            jobs = [action.job.id for action in users.submit(now)]  # type: ignore[union-attr]
            most = max(most, len(users._stays))
            for job in jobs:
                users._present.job_ended(job, "COMPLETED_SUCCESSFULLY", now)  # type: ignore[arg-type]
        known.append(most)
    assert known[1] <= 2 * known[0]


def test_the_command_writes_the_same_bytes_for_the_same_seed_and_a_log_without_a_fault(
    tmp_path: Path,
) -> None:
    log = Path(__file__).parents[2] / "workloads" / "sample.swf"
    written = []
    for number, seed in enumerate(("1", "1", "2")):
        out = tmp_path / f"{number}.swf"
        code, _, err = call(
            ["resample", log, "--weeks", "6", "--seed", seed, "--output", out], PYTHONHASHSEED=str(number + 1)
        )
        assert (code, err) == (0, "")
        written.append(out.read_bytes())
    assert written[0] == written[1] != written[2]
    again = read_swf(tmp_path / "0.swf")
    assert len(again) > 0
    write_swf(tmp_path / "again.swf", again)
    assert (tmp_path / "again.swf").read_bytes() == written[0]


# --- resampled logs are like the log -------------------------------------------------------------


def smirnov(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """The chance of two samples so far apart, by Kolmogorov and Smirnov's asymptotic law."""
    every = np.sort(np.concatenate([one, two]))
    apart = np.abs(
        np.searchsorted(np.sort(one), every, side="right") / len(one)
        - np.searchsorted(np.sort(two), every, side="right") / len(two)
    ).max()
    size = len(one) * len(two) / (len(one) + len(two))
    x = (np.sqrt(size) + 0.12 + 0.11 / np.sqrt(size)) * apart
    if x < 0.2:
        return 1.0
    k = np.arange(1, 101)
    return float(np.clip(2 * ((-1.0) ** (k - 1) * np.exp(-2 * k**2 * x**2)).sum(), 0, 1))


def weekly(log: SwfLog, nb_weeks: int) -> dict[str, NDArray[np.float64]]:
    """Jobs, users and load of each week."""
    week = ((log.submit - log.submit.min()) // WEEK).astype(int)
    work = log.run_time * log.processors
    return {
        "jobs": np.bincount(week, minlength=nb_weeks).astype(float)[:nb_weeks],
        "users": np.array([float(len(np.unique(log.user[week == w]))) for w in range(nb_weeks)]),
        "load": np.bincount(week, weights=work, minlength=nb_weeks)[:nb_weeks],
    }


def resampled(log: SwfLog, seeds: int) -> list[SwfLog]:
    """A new log for each seed, as long as the old one."""
    populations = [USERS.create("resample", {"seed": str(seed)}) for seed in range(1, seeds + 1)]
    return [resampled_log(log, each) for each in populations if isinstance(each, Resample)]


def check_alike(log: SwfLog, seeds: int) -> None:
    """Weekly figures by two-sample tests, cycles and jobs by the distance of distributions.

    The tests are on the weeks of each seed, and at most one in ten seeds may fail at 1%: weeks are not
    independent of each other, as the tests assume. The load of a week has the log's mean, up to 10%, but not
    its spread (see below). Of hours, weekdays, sizes and run times, of which a log has thousands, the
    distribution functions over all seeds may differ by 0.1 at most.
    """
    full = int((log.submit.max() - log.submit.min()) // WEEK)
    own = weekly(log, full)
    logs = resampled(log, seeds)
    weeks = [weekly(new, full) for new in logs]
    for name in ("jobs", "users"):
        failed = sum(smirnov(each[name], own[name]) < LEAST_CHANCE for each in weeks)
        assert failed <= seeds / 10, f"{name}: {failed} of {seeds} seeds"
    load = np.mean([each["load"].mean() for each in weeks])
    assert load == pytest.approx(own["load"].mean(), rel=0.1)
    beginning = log.submit.min()
    pooled = [per_job(new, beginning) for new in logs]
    for name, values in per_job(log, beginning).items():
        assert distance(np.concatenate([each[name] for each in pooled]), values) <= 0.1, name


def per_job(log: SwfLog, beginning: float) -> dict[str, NDArray[np.float64]]:
    time = log.submit - beginning
    return {
        "hour": time % DAY // 3600,
        "weekday": time % WEEK // DAY,
        "size": log.processors.astype(float),
        "run time": log.run_time,
    }


def distance(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    """The largest difference of two distribution functions."""
    every = np.unique(np.concatenate([one, two]))
    shares = [np.searchsorted(np.sort(each), every, side="right") / len(each) for each in (one, two)]
    return float(np.abs(shares[0] - shares[1]).max())


def kth(shared: Path) -> SwfLog:
    log = read_swf(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")
    return log.select(log.processors > 0)


def test_resampled_logs_are_like_kth(shared: Path) -> None:
    check_alike(kth(shared), seeds=4)


@pytest.mark.slow
def test_fifty_resampled_logs_are_like_kth(shared: Path) -> None:
    check_alike(kth(shared), seeds=50)


@pytest.mark.slow
def test_without_feedback_the_load_of_weeks_varies_more_than_in_the_log(shared: Path) -> None:
    """In the log users kept out of each other's way; users who are mixed anew and do not react cannot."""
    log = kth(shared)
    full = int((log.submit.max() - log.submit.min()) // WEEK)
    own = weekly(log, full)["load"].std()
    spreads = [weekly(new, full)["load"].std() for new in resampled(log, 50)]
    assert min(spreads) > own


def test_a_simulated_population_gives_each_job_once(sample_log: SwfLog) -> None:
    users = USERS.create("resample", {"weeks": "2", "long_term": "3"}).users(swf_to_workload(sample_log))
    assert rows(replay(users, hosts=128, scheduler="easy"))


def test_who_is_there_for_as_many_weeks_as_asked_for_is_there_for_good() -> None:
    log = [Record(user, week * WEEK, 1) for week in range(6) for user in (1, 2) if user == 1 or week < 5]
    found = Pool.of(workload_of(log), long_term_weeks=6, margin=0)
    assert [stream.user for stream in found.long_term] == ["1"]
    assert [stream.user for stream in found.temporary] == ["2"]
    assert (found.nb_temporary, found.arrivals) == (5 / 6, 1 / 6)


def test_two_hundred_years_are_the_longest_log() -> None:
    weeks = 200 * 53
    longest = [Record(1, 0, 1), Record(1, (weeks - 1) * WEEK, 1)]
    assert Pool.of(workload_of(longest), 12, margin=1).nb_weeks == weeks
    with pytest.raises(InputError, match=r"over 10,601 weeks, of which each would be resampled"):
        Pool.of(workload_of([*longest, Record(1, weeks * WEEK, 1)]), 12, margin=1)


def test_in_the_first_week_users_are_found_in_proportion_to_how_long_they_stay() -> None:
    """User 1 stays for a week and user 2 for nine, so user 2 is there nine times as often."""
    log = [
        Record(1, 5 * WEEK, 1),
        *(Record(2, week * WEEK, 1) for week in range(5, 14)),
        Record(3, 19 * WEEK, 1),
    ]
    pool = Pool.of(workload_of(log), 12, margin=1)
    found: Counter[str] = Counter()
    for seed in range(600):
        for stay in Turnover(pool, Rules(seed=seed)).come(0):
            found[stay.stream.user] += 1
            assert stay.stream.first_week <= stay.from_week <= stay.stream.last_week
    assert sum(found.values()) == pytest.approx(600 * 11 / 20, abs=40)
    assert found["2"] / sum(found.values()) == pytest.approx(0.9, abs=0.05)
    assert set(found) == {"1", "2"}
