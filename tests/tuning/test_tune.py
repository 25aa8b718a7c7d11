"""``bp.tune``: what is searched, what is compared, and that a search goes on as if nothing had happened."""

from __future__ import annotations

import shutil
import time
from multiprocessing import get_context
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import pytest

import batsched_py as bp
from batsched_py.api.many import LogInPeriods
from batsched_py.api.simulate import experiment_of
from batsched_py.errors import InputError
from batsched_py.tuning.plan import TuningPlan
from batsched_py.tuning.space import Objective
from batsched_py.tuning.trials import Division, divided

pytest.importorskip("optuna")

DAY = 86400.0
SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"


def plan(**changes: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "objectives": ["mean_bounded_slowdown"],
        "trials": 8,
        "batch": 4,
        "parts": "4d",
        "search_parts": [2, 3, 4, 5],
        "held_out_parts": [6, 7, 8],
        "logs": {"sample": {"file": str(SAMPLE)}},
        "platforms": {"full": {"hosts": 64}},
        "schedulers": {
            "today": {"name": "easy"},
            "candidate": {"name": "easy", "options": {"order": "-(wait / walltime)**{a} / size**{b}"}},
        },
        "search": {"a": {"from": 0.0, "to": 4.0}, "b": {"from": -2.0, "to": 2.0}},
        **changes,
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a search that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    bp.tune(plan(), folder, workers=1)
    return folder


def test_trials_that_are_kept_are_not_done_again_and_the_others_come_out_the_same(
    whole: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "again"
    shutil.copytree(whole, folder)
    for name in ("trials/00001.json", "trials/00004.json", "trials/00007.json", "held-out/today.json"):
        (folder / name).unlink()
    (folder / "trials" / "00002.json").write_text('{"study":')
    kept = (folder / "trials" / "00000.json").stat().st_mtime_ns
    bp.tune(plan(), folder, workers=2)
    names = sorted(path.relative_to(whole) for path in whole.rglob("*.json"))
    assert len(names) == 9 + 2 + 1
    assert [(folder / name).read_bytes() for name in names] == [(whole / name).read_bytes() for name in names]
    assert (folder / "trials" / "00000.json").stat().st_mtime_ns == kept


@pytest.mark.slow
def test_a_search_that_is_killed_at_ten_random_moments_loses_nothing(tmp_path: Path) -> None:
    """Each moment is shortly after a random number of trials, so that all of them are before the end."""
    words = plan(trials=30, search_parts=[2, 3], held_out_parts=[4, 5])
    bp.tune(words, tmp_path / "whole", workers=1)
    folder, random, until = tmp_path / "killed", Random(1), time.monotonic() + 600
    for number in sorted(random.sample(range(24), 10)):
        process = get_context("fork").Process(target=bp.tune, args=(words, folder), kwargs={"workers": 2})
        process.start()
        while len([*folder.glob("trials/*.json")]) < number and time.monotonic() < until:
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.03))
        process.kill()
        process.join()
        assert process.exitcode == -SIGKILL
    bp.tune(words, folder, workers=2)
    assert files_of(folder) == files_of(tmp_path / "whole")


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_other_plans_do_not_use_the_trials_that_are_kept(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(whole, folder)
    before = bp.tune(plan(), folder, workers=1).today
    assert bp.tune(plan(lead_in="1d", trials=1), folder, workers=1).today != before


def test_more_trials_go_on_with_those_that_are_there(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "more"
    shutil.copytree(whole, folder)
    kept = (folder / "trials" / "00007.json").stat().st_mtime_ns
    found = bp.tune(plan(trials=12), folder, workers=1)
    assert len(found.trials) == 12
    assert (folder / "trials" / "00007.json").stat().st_mtime_ns == kept


def test_figures_are_those_of_a_simulation_of_each_part(tmp_path: Path) -> None:
    """A part is simulated with the jobs of two days before and after it, and measured alone."""
    found = bp.tune(plan(search_parts=[3], held_out_parts=[4], trials=1), tmp_path, workers=1)
    experiment, _, _ = experiment_of([SAMPLE], "easy", {}, None, {}, {"hosts": 64})
    first = LogInPeriods(experiment).submissions(6 * DAY, 14 * DAY)[0]
    around = bp.read_log(SAMPLE).period(start="6d", end="14d")
    alone = bp.simulate(around, "easy", hosts=64, measure=f"{8 * DAY - first}s:{12 * DAY - first}s")
    assert found.today == [pytest.approx(alone.metrics["mean_bounded_slowdown"], rel=1e-12)]


def test_the_campaign_of_the_best_settings_can_be_read(whole: Path) -> None:
    runs = bp.Plan.read(whole / "best.toml").runs
    assert [name.rpartition("_")[2] for name in runs] == ["today", "best"]
    said = (whole / "best.toml").read_text()
    assert "those that were searched: 2, 3, 4, 5.\n" in said and "not the result on the parts" in said


def test_parts_are_divided_by_time() -> None:
    experiment, _, _ = experiment_of([SAMPLE], "easy", {}, None, {}, {"hosts": 64})
    log = LogInPeriods(experiment)
    parts = divided(log, Division(parts="1w"))
    assert [part.number for part in parts.search] == [2, 3, 4]
    assert [part.number for part in parts.held_out] == [5, 6, 7, 8]
    jobs = parts.searched[0].workloads[0].jobs
    times = [job.submission_time for job in jobs]
    assert min(times) >= 5 * 86400 and max(times) < 16 * 86400
    assert len(divided(log, Division(parts="1w", continuous=True)).searched) == 1
    with pytest.raises(InputError, match="part 2 is searched, too"):
        divided(log, Division(parts="1w", search=[2], held_out=[2]))
    with pytest.raises(InputError, match="there is no part 90"):
        divided(log, Division(parts="1w", search=[90]))


def test_several_objectives_give_a_front(tmp_path: Path) -> None:
    objectives = ["mean_waiting_time of class=short, narrow", "max_waiting_time"]
    found = bp.tune(plan(objectives=objectives, trials=6), tmp_path, workers=1)
    assert all(each.state == "whole" for each in found.trials)
    front = [found.trials[each.trial].means for each in found.finalists]
    assert front == sorted(front)
    for mine in front:
        assert not any(
            its[0] <= mine[0] and its[1] <= mine[1] and its != mine for its in (t.means for t in found.trials)
        )
    assert len([each for final in found.finalists for each in final.compared]) == 2 * len(front)


def test_lines_of_slurm_conf_are_searched(tmp_path: Path) -> None:
    words = plan(
        schedulers={"today": {"name": "slurm"}, "candidate": {"name": "slurm"}},
        slurm={"lines": ["SchedulerParameters=bf_interval={every}", "scheduling.bf_max_job_test={depth}"]},
        search={"every": {"from": 30, "to": 600}, "depth": {"choices": [1, 500]}},
        search_parts=[2],
        held_out_parts=[3],
        trials=2,
    )
    found = bp.tune(words, tmp_path, workers=1)
    written = [path.read_text() for path in (tmp_path / "settings").glob("*.toml")]
    assert any(f"bf_interval = {found.trials[0].settings['every']}" in text for text in written)
    assert "too few for a test" in " ".join(found.warnings)


def test_sizes_of_machines_are_searched(tmp_path: Path) -> None:
    schedulers = {"today": {"name": "easy"}, "candidate": {"name": "easy"}}
    words = plan(
        schedulers=schedulers,
        platforms={"today": {"hosts": 64}, "candidate": {"hosts": "{h}"}},
        search={"h": {"choices": [64, 128]}},
        search_parts=[2],
        held_out_parts=[3],
        trials=4,
    )
    found = bp.tune(words, tmp_path, workers=1)
    values = {each.settings["h"]: each.means for each in found.trials}
    assert values["64"] == found.today
    assert values["128"] < values["64"]
    assert found.finalists[0].settings == {"h": "128"} and "--hosts 128" in found.finalists[0].command
    assert [*bp.Plan.read(tmp_path / "best.toml").runs] == ["sample_today_today", "sample_best_today"]


def test_users_who_react_and_seeds(tmp_path: Path) -> None:
    users = {"reacting": {"name": "think-time", "options": {"sessions": "arrival:60"}}}
    schedulers = {
        "today": {"name": "random"},
        "candidate": {"name": "easy", "options": {"order": "{order}"}},
    }
    words = plan(
        users=users,
        schedulers=schedulers,
        search={"order": {"choices": ["shortest", "longest"]}},
        search_parts=[2],
        held_out_parts=[3],
        trials=2,
        seeds=[1, 2],
    )
    found = bp.tune(words, tmp_path, workers=1)
    assert found.today[0] != found.trials[0].means[0]


def test_a_population_is_one_simulation_of_all_parts(tmp_path: Path) -> None:
    """Each part is a window of it, and the parts before them have their jobs, too."""
    users = {"many": {"name": "resample", "options": {"weeks": 2, "seed": 1}}}
    words = plan(users=users, continuous=True, search_parts=[2], held_out_parts=[3], trials=1, lead_out="0d")
    found = bp.tune(words, tmp_path, workers=1)
    around = bp.read_log(SAMPLE).period(end="8d")
    options = {"weeks": "2", "seed": "1"}
    alone = bp.simulate(around, "easy", hosts=64, users="resample", user_options=options, measure="4d:8d")
    assert found.today == [pytest.approx(alone.metrics["mean_bounded_slowdown"], rel=1e-12)]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"objectives": ["speed"]}, "there is no metric 'speed'"),
        ({"objectives": ["nb_jobs"]}, "neither more nor less"),
        ({"search": {"a": {"from": 1.0, "to": 0.0}}}, "needs `from` and a larger `to`"),
        ({"search": {"a": {"from": 0.0, "to": 1.0}}}, r"there is no setting \{b\}"),
        ({"search": {"z": {"from": 0.0, "to": 1.0}}}, r"\{z\} stands nowhere"),
        ({"schedulers": {"today": {"name": "easy"}}}, "has two entries"),
        ({"logs": {"one": {"file": "a.swf"}, "two": {"file": "b.swf"}}}, "on one entry"),
        ({"logs": {"one": {"file": "nowhere.swf"}}}, "there is no file"),
        (
            {"platforms": {"full": {"hosts": "{a}"}}},
            "platforms: has one entry, or two, `today` and `candidate`",
        ),
        ({"users": {"many": {"name": "resample"}}}, r"users\.many: .* write `continuous = true`"),
        ({"users": {"many": {"behaviour": "resample"}}}, "there is no such key; known are name, options"),
    ],
)
def test_mistakes_are_told(changes: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=fault):
        bp.tune(plan(**changes), tmp_path, workers=1)


def test_trials_that_cannot_be_done_are_told(tmp_path: Path) -> None:
    schedulers = plan()["schedulers"] | {"candidate": {"name": "easy", "options": {"order": "{order}"}}}
    words = plan(schedulers=schedulers, search={"order": {"choices": ["shortest", "nonsense"]}}, trials=4)
    found = bp.tune(words, tmp_path, workers=1)
    assert {each.state for each in found.trials} >= {"failed"}
    assert found.finalists[0].settings == {"order": "shortest"}


def test_objectives_know_what_is_better() -> None:
    assert Objective.parse("utilization").sign == -1
    assert Objective.parse("mean_waiting_time").sign == 1


def test_the_identity_of_a_search_depends_on_its_plan(tmp_path: Path) -> None:
    from batsched_py.campaign.plan import PlanWords

    def study(**changes: Any) -> str:
        return TuningPlan(PlanWords(plan(**changes), "small"), tmp_path).study

    assert study() == study(trials=99) == study(title="other")
    assert len({study(), study(seed=1), study(parts="5d"), study(batch=5)}) == 4
