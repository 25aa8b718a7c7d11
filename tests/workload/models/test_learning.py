"""Models that learn from a log: what they keep of it, and how they are saved."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.workload.description import describe
from batsched_py.workload.description.jobs import bags_of_tasks, jobs_that_ran, kolmogorov_smirnov, requested
from batsched_py.workload.description.users import locality
from batsched_py.workload.models import MODELS, LearningModel
from batsched_py.workload.models.minh_wolters import MinhWolters, Naive, parallelism_classes
from batsched_py.workload.models.realistic import Realistic
from batsched_py.workload.models.slots import Slots
from batsched_py.workload.recipe import load_model, save_model
from batsched_py.workload.sessions import Delimiter, cut_workload
from batsched_py.workload.swf.log import COLUMNS, SwfLog
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload
from tests.logs import log_of

LEARNING = ["minh-wolters", "naive", "realistic", "slots"]


@pytest.fixture(scope="module")
def sample(root: Path) -> SwfLog:
    return read_swf(root / "workloads" / "sample.swf")


@pytest.fixture(scope="module")
def fitted(sample: SwfLog) -> dict[str, LearningModel]:
    models = {name: MODELS.create(name, {}) for name in LEARNING}
    return {name: model.fit(sample) for name, model in models.items() if isinstance(model, LearningModel)}


def equal(first: SwfLog, second: SwfLog) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in COLUMNS)


def test_every_model_is_known_by_name() -> None:
    assert list(MODELS.all()) == ["batsim-evaluation", "cluster", "lublin", *LEARNING]


@pytest.mark.parametrize("name", LEARNING)
def test_as_many_jobs_as_asked_for(fitted: dict[str, LearningModel], name: str) -> None:
    log = fitted[name].generate(500, seed=1)
    assert len(log) == 500
    assert (log.run_time >= 1).all() and (log.processors >= 1).all() and (log.submit >= 0).all()
    assert log.processors.max() <= log.machine_size == 64
    assert f"model {name} like sample.swf, seed 1" in log.header["Computer"]


@pytest.mark.parametrize("name", ["minh-wolters", "realistic", "slots"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_fifth_of_the_jobs_takes_0_seconds_as_in_the_log(sample: SwfLog, name: str) -> None:
    short = np.arange(len(sample)) % 5 == 0
    log = replace(sample, run_time=np.where(short, 0, sample.run_time))
    model = MODELS.create(name, {})
    assert isinstance(model, LearningModel)
    made = model.fit(log).generate(len(log), seed=1)
    assert np.mean(made.run_time == 0) == pytest.approx(np.mean(short), abs=0.04)


@pytest.mark.parametrize("name", LEARNING)
def test_the_same_seed_gives_the_same_log(fitted: dict[str, LearningModel], name: str) -> None:
    first, again, other = (fitted[name].generate(500, seed) for seed in (1, 1, 2))
    assert equal(first, again)
    assert not equal(first, other)


@pytest.mark.parametrize("name", LEARNING)
def test_a_saved_model_generates_the_same(
    fitted: dict[str, LearningModel], name: str, tmp_path: Path
) -> None:
    save_model(tmp_path / "model.json", fitted[name])
    again = load_model(tmp_path / "model.json")
    assert again.name == name
    assert equal(again.generate(500, 3), fitted[name].generate(500, 3))


@pytest.mark.parametrize("name", LEARNING)
def test_a_model_that_has_not_learned_says_so(name: str) -> None:
    with pytest.raises(InputError, match=f"the model {name} learns from a log; give it one"):
        MODELS.create(name, {}).generate(10, 0)


@pytest.mark.parametrize("name", LEARNING)
def test_too_few_jobs_to_learn_from(name: str) -> None:
    model = MODELS.create(name, {})
    assert isinstance(model, LearningModel)
    with pytest.raises(InputError, match=r"small.swf: too few jobs that ran to learn from: 0"):
        model.fit(log_of(run_time=[0, 0]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nonsense", "not a fitted model: JSON is malformed"),
        (
            '{"format": "x", "version": 1, "model": "", "options": {}, "parameters": {}}',
            "'x', version 1, is not",
        ),
        (
            '{"format":"batsched-py model", "version":1, "model":"naive", "options":{}, "parameters":{}}',
            "not parameters of the model naive: Object missing required field `interarrival`",
        ),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "model.json").write_text(content)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path / "model.json")


def test_without_scikit_learn_it_says_what_to_install(
    sample: SwfLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.mixture", None)
    with pytest.raises(
        InputError, match=r"needs scikit-learn; install it with: pip install 'batsched-py\[models\]'"
    ):
        Realistic().fit(sample)


# --- realistic -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def like(sample: SwfLog, fitted: dict[str, LearningModel]) -> SwfLog:
    return fitted["realistic"].generate(len(jobs_that_ran(sample)), seed=5)


def test_run_times_and_sizes_are_distributed_as_in_the_log(sample: SwfLog, like: SwfLog) -> None:
    jobs = jobs_that_ran(sample)
    assert kolmogorov_smirnov(jobs.run_time, like.run_time) < 0.05
    assert kolmogorov_smirnov(requested(jobs), requested(like)) < 0.05


def test_jobs_of_a_bag_share_size_estimate_and_user(like: SwfLog) -> None:
    found = describe(like)
    assert found.bags.contiguous.share_of_jobs > 0.05
    assert found.users.users > 20


def test_estimates_are_not_below_run_times(like: SwfLog) -> None:
    said = like.requested_time > 0
    assert said.any()
    assert (like.requested_time[said] >= like.run_time[said]).all()


def test_it_can_be_replayed_with_feedback(like: SwfLog) -> None:
    sessions = cut_workload(swf_to_workload(like), Delimiter("arrival", 60))
    assert sum(len(each.jobs) for user in sessions.values() for each in user) == len(like)
    assert max(len(each.jobs) for user in sessions.values() for each in user) > 1


def test_gaussians_may_be_fitted_to_run_times_themselves(sample: SwfLog) -> None:
    few = sample.select(np.arange(500))
    log = Realistic(run_times="linear").fit(few).generate(500, seed=1)
    assert log.run_time.mean() == pytest.approx(jobs_that_ran(few).run_time.mean(), rel=0.3)


def test_with_another_window_there_are_other_bags(sample: SwfLog) -> None:
    few = sample.select(np.arange(400))
    shares = []
    for window in (0.0, 100.0, 1000.0):
        log = Realistic(window=window).fit(few).generate(len(few), seed=1)
        shares.append(bags_of_tasks(log, window).contiguous.share_of_jobs)
    assert shares == sorted(shares) and shares[2] > 1.5 * shares[1]


def test_a_fitted_model_keeps_its_window(fitted: dict[str, LearningModel]) -> None:
    other = Realistic(window=50.0)
    other.parameters = fitted["realistic"].parameters
    with pytest.raises(InputError, match="fitted with a window of 100 s; fit it again for one of 50 s"):
        other.generate(10, seed=1)


@pytest.mark.parametrize("kind", [Realistic, MinhWolters])
def test_a_smaller_exponent_gives_larger_bags(
    fitted: dict[str, LearningModel], kind: type[Realistic | MinhWolters]
) -> None:
    shares = []
    for exponent in (5.0, 1.0):
        model = kind(zipf=exponent)
        model.parameters = fitted[model.name].parameters
        shares.append(bags_of_tasks(model.generate(2000, seed=1)).contiguous.share_of_jobs)
    assert shares[1] > 2 * shares[0]


def test_users_come_for_some_weeks_and_leave(sample: SwfLog, like: SwfLog) -> None:
    real, made = locality(jobs_that_ran(sample)).user, locality(like).user
    assert made.distance / made.by_chance > 1.2
    assert made.distance == pytest.approx(real.distance, abs=0.15)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    Realistic().fit(log_of(run_time=np.arange(1, 200)), lambda done, total: told.append((done, total)))
    assert told == [(done, 22) for done in range(1, 23)]  # 16 numbers of clusters and 6 trials


# --- the others ----------------------------------------------------------------------------------


def test_parallelism_classes_are_rounded_logarithms_of_counts() -> None:
    sizes = np.repeat([4, 10, 3], [250, 300, 1])
    assert parallelism_classes(sizes) == {"3": 1, "4": 9, "10": 9}


def test_jobs_of_a_published_bag_are_all_the_same(sample: SwfLog) -> None:
    log = MinhWolters().fit(sample).generate(2000, seed=1)
    for user in np.unique(log.user).tolist():
        bag = log.select(log.user == user)
        assert len(np.unique(bag.run_time)) == len(np.unique(bag.processors)) == 1
        assert (np.diff(bag.submit) <= 100).all()


def test_naive_arrivals_have_the_rate_of_the_log(sample: SwfLog) -> None:
    log = Naive().fit(sample).generate(20_000, seed=1)
    mean = np.diff(jobs_that_ran(sample).submit).mean()
    assert np.diff(log.submit).mean() == pytest.approx(mean, rel=0.03)


def test_slots_keep_the_shares_of_hours_and_weekdays(sample: SwfLog) -> None:
    real, made = describe(sample).cycles, describe(Slots().fit(sample).generate(20_000, seed=1)).cycles
    by_hour, by_hour_made = (np.reshape(each.by_hour_of_week, (7, 24)).sum(axis=0) for each in (real, made))
    assert by_hour_made / 20_000 == pytest.approx(by_hour / by_hour.sum(), abs=0.03)


def test_slots_keep_the_work_of_jobs_on_another_machine(sample: SwfLog) -> None:
    jobs = jobs_that_ran(sample)
    work = jobs.run_time * requested(jobs)
    same = Slots().fit(sample).generate(20_000, seed=1)
    assert kolmogorov_smirnov(work, same.run_time * same.processors) < 0.05
    faster = Slots(processors=256, speed=2.0).fit(sample).generate(20_000, seed=1)
    assert faster.machine_size == 256
    assert kolmogorov_smirnov(work, faster.run_time * faster.processors * 2) < 0.05


@pytest.mark.parametrize("name", ["realistic", "minh-wolters"])
@pytest.mark.parametrize("exponent", ["-2", "nan", "1e9"])
def test_an_exponent_of_no_zipf_law_is_refused(name: str, exponent: str) -> None:
    with pytest.raises(InputError, match=r"at `\$.zipf`"):
        MODELS.create(name, {"zipf": exponent})
