"""Users who lose patience, users who are sober, and how behaviours are named one around the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from batsched_py.analysis.metrics import measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import read_schedule
from batsched_py.errors import InputError
from batsched_py.protocol.profiles import HomogeneousTotal, Profile
from batsched_py.users import USERS, Action, Submission, Withdrawal, WrappedUser
from batsched_py.users.patience import Breaks, Patience, _never_growing
from batsched_py.users.sober import Sober
from batsched_py.users.think_time import ThinkTime
from batsched_py.workload.swf.conventions import LOG_SPEED
from tests.feedback import Record, replay, rows, submissions, workload_of

HOUR = 3600.0


def test_an_option_is_for_all_that_have_it_and_with_a_name_for_one() -> None:
    outer = USERS.create(
        "sober(patience(think-time))", {"seed": "3", "patience.seed": "5", "sessions": "max:20"}
    )
    assert isinstance(outer, Sober)
    assert isinstance(outer.inner, Patience)
    assert isinstance(outer.inner.inner, ThinkTime)
    assert (outer.seed, outer.inner.seed, outer.inner.inner.sessions) == (3, 5, "max:20")


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("patience(nobody)", {}, "there is no user behaviour 'nobody'"),
        ("rigid(fluid)", {}, "'rigid' goes around no other one"),
        ("patience()", {}, r"write outer\(inner\)"),
        ("patience(resample)", {}, r"write resample\(patience"),
        ("patience(fluid)", {"edges": "all"}, "has no option 'edges'; it knows patience.nameless"),
        ("patience(fluid)", {"fluid.seed": "1"}, "has no option 'fluid.seed'"),
        ("sober", {"later": "0.7", "give_up": "0.6"}, "sum up to 1.3"),
        ("sober", {"windows": "3-2"}, "window '3-2' of sober users"),
        ("sober", {"windows": "0-20,10-30"}, "overlap at 10 s"),
        ("sober", {"signal_file": "nowhere.csv"}, "no signal of lines TIME,VALUE"),
        ("resample", {"oversample": "12"}, "write USER:TIMES"),
        ("resample", {"rest": "-1"}, "less than 0 weeks"),
    ],
)
def test_mistakes_are_named(name: str, options: dict[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        USERS.create(name, options)


def breaks(*chances: tuple[float, float]) -> Breaks:
    responses, stay = zip(*chances, strict=True)
    return Breaks(np.array(responses), np.array(stay), np.array([HOUR]))


def test_a_user_leaves_when_the_chance_to_stay_has_fallen_below_its_mood() -> None:
    falling = breaks((0, 0.8), (60, 0.4), (600, 0.2))
    assert [falling.patience(mood, 0.0) for mood in (0.1, 0.4, 0.9)] == [np.inf, 600, 60]


def test_a_user_has_endured_the_recorded_response() -> None:
    falling = breaks((0, 0.8), (60, 0.4), (600, 0.2))
    assert [falling.patience(mood, 100.0) for mood in (0.4, 0.9)] == [np.inf, 600]


def test_the_chance_to_stay_is_that_of_the_log() -> None:
    """After jobs of a minute the next comes at once, after those of an hour the next day."""
    short = [Record(1, 100.0 * n, 60) for n in range(100)]
    long = [Record(2, 86400.0 * n, 3600) for n in range(100)]
    learned = Breaks.of(workload_of(short + long), 20 * 60)
    assert dict(zip(learned.responses.tolist(), learned.chances.tolist(), strict=True)) == {60: 1, 3600: 0}
    assert set(learned.lengths.tolist()) == {86400.0 - 3600.0}


LEARN = [Record(2, 100.0 * n, 60) for n in range(50)] + [Record(3, 86400.0 * n, 3600) for n in range(50)]


def impatient(**options: str) -> str:
    """User 1's first job takes two hours instead of a minute; its session would have gone on 10 s later."""
    log = sorted([Record(1, 0, 60), Record(1, 70, 60), *LEARN], key=lambda record: record.submit)
    behaviour = USERS.create("patience(think-time)", {"sessions": "max:0"} | options)
    return replay(behaviour.users(workload_of(log)), hosts=500, speed=1 / 120)


def test_a_user_who_waited_for_too_long_is_away_for_a_while() -> None:
    csv = impatient(for_good="0")
    (first,) = [row for row in rows(csv).values() if "user=1 session=0" in row["metadata"]]
    (second,) = [row for row in rows(csv).values() if "user=1 session=1" in row["metadata"]]
    assert "left=82800" in first["metadata"]
    assert float(second["submission_time"]) == 3600 + 82800


def test_a_user_may_leave_for_good_and_metrics_count_it(tmp_path: Path) -> None:
    csv = impatient(for_good="1")
    notes = [row["metadata"] for row in rows(csv).values() if "user=1" in row["metadata"]]
    assert len(notes) == 1
    assert notes[0].endswith("left=for-good abandoned=1")
    (tmp_path / "out_jobs.csv").write_text(csv)
    measured = measure(Outcome(read_schedule(tmp_path / "out_jobs.csv")))
    assert measured["nb_departures"] == measured["nb_departures_for_good"] == 2
    assert measured["nb_jobs_abandoned"] == 2 + len(LEARN) - len(rows(csv)) == 50


def test_patience_as_recorded_is_never_lost_on_the_recorded_machine() -> None:
    log = sorted([Record(1, 0, 60), Record(1, 70, 60), *LEARN], key=lambda record: record.submit)
    users = USERS.create("patience(adjusted)", {"for_good": "1"}).users(workload_of(log))
    again = submissions(replay(users, hosts=500))
    assert again == {str(n): record.submit for n, record in enumerate(log, start=1)}


def sober(**options: str) -> dict[str, dict[str, str]]:
    log = [Record(1, 0, 10, 4), Record(1, 100, 10, 4), Record(1, 300, 10, 4)]
    users = USERS.create("sober(rigid)", {"windows": "50-200"} | options).users(workload_of(log))
    return rows(replay(users, hosts=4))


@pytest.mark.parametrize(
    ("chance", "submitted", "hosts", "run_time", "state"),
    [
        ("later", 200, "4", 10, "COMPLETED_SUCCESSFULLY"),
        ("fewer", 100, "2", 20, "COMPLETED_SUCCESSFULLY"),
        ("less", 100, "2", 10, "COMPLETED_SUCCESSFULLY"),
        ("shorter", 100, "4", 5, "COMPLETED_SUCCESSFULLY"),
        ("give_up", 100, "4", None, "REJECTED"),
    ],
)
def test_what_a_sober_user_does_inside_a_window(
    chance: str, submitted: float, hosts: str, run_time: float | None, state: str
) -> None:
    found = sober(**{chance: "1"})
    job = found["2"]
    assert (float(job["submission_time"]), job["requested_number_of_resources"]) == (submitted, hosts)
    assert job["final_state"] == state
    assert run_time is None or float(job["execution_time"]) == run_time
    assert "window=50:200" in job["metadata"]
    assert [float(found[n]["submission_time"]) for n in "13"] == [0, 300]


@pytest.mark.parametrize(("chance", "run_time"), [("fewer", 20), ("less", 10), ("shorter", 5)])
def test_work_that_hosts_share_is_changed_in_the_same_way(chance: str, run_time: float) -> None:
    workload = workload_of([Record(1, 100, 10, 4)])
    shared: dict[str, Profile] = {"run_10": HomogeneousTotal(4 * 10 * LOG_SPEED)}
    rules = USERS.create("sober(rigid)", {"windows": "50-200", chance: "1"})
    found = rows(replay(rules.users(replace(workload, profiles=shared)), hosts=4))
    assert float(found["1"]["execution_time"]) == run_time


def test_the_speed_up_law_says_how_much_longer_a_job_runs_on_fewer_hosts() -> None:
    assert float(sober(fewer="1", speedup="0.5", share="0.25")["2"]["execution_time"]) == 20


def test_a_signal_makes_windows(tmp_path: Path) -> None:
    (tmp_path / "signal.csv").write_text("0,0.2\n50,3\n90,2\n200,0.1\n")
    rules = USERS.create("sober", {"signal_file": str(tmp_path / "signal.csv"), "high": "2"})
    assert isinstance(rules, Sober)
    assert [(window.start, window.end) for window in rules.times] == [(50.0, 200.0)]


def demand_response(tmp_path: Path, chances: str) -> dict[str, dict[str, str]]:
    """Jobs of users 1 and 2 at 100 s (signal 1), 200 s (signal 2) and 400 s (signal 0)."""
    (tmp_path / "signal.csv").write_text("0,0\n50,1\n150,2\n300,0\n")
    (tmp_path / "chances.csv").write_text(chances)
    files = {"signal_file": str(tmp_path / "signal.csv"), "chances_file": str(tmp_path / "chances.csv")}
    log = [Record(user, time, 10, 2) for time in (100, 200, 400) for user in (1, 2)]
    return rows(replay(USERS.create("sober(rigid)", files).users(workload_of(log)), hosts=8))


def test_what_users_do_depends_on_the_level_of_the_signal(tmp_path: Path) -> None:
    found = demand_response(tmp_path, "user,level,fewer,give_up\n*,1,1,0\n*,2,0,1\n")
    assert [found[n]["requested_number_of_resources"] for n in "15"] == ["1", "2"]
    assert [found[n]["final_state"] for n in "1356"] == [
        "COMPLETED_SUCCESSFULLY",
        "REJECTED",
        "COMPLETED_SUCCESSFULLY",
        "COMPLETED_SUCCESSFULLY",
    ]
    assert "sober=fewer window=50:150 level=1" in found["1"]["metadata"]
    assert "sober=gave-up window=150:300 level=2" in found["3"]["metadata"]


def test_what_users_do_depends_on_who_they_are(tmp_path: Path) -> None:
    """The first comes back when energy is not short at any level; the second does what others do."""
    found = demand_response(tmp_path, "user,level,later,shorter\n1,1,1,0\n*,2,0,1\n")
    assert [float(found[n]["submission_time"]) for n in "135"] == [300, 300, 400]
    assert [float(found[n]["execution_time"]) for n in "246"] == [10, 5, 10]


def test_one_of_a_population_does_what_the_user_of_the_log_does(tmp_path: Path) -> None:
    (tmp_path / "chances.csv").write_text("user,level,later\n12,1,0.5\n*,1,0.25\n")
    rules = USERS.create("sober", {"chances_file": str(tmp_path / "chances.csv")})
    assert isinstance(rules, Sober)
    assert [rules.table.of(user, 1.0)[0] for user in ("12", "12.3", "13")] == [0.5, 0.5, 0.25]
    assert rules.table.of("12", 0.5) == (0.0,) * 5


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("user,level,later\n*,1,0.5\n*,2,1.5\n", "line 3: write columns user, level and any of later"),
        ("user,later\n*,0.5\n", "line 2: write columns"),
        ("user,level,never\n*,1,0.5\n", "line 2: write columns"),
        ("user,level,later\n7,1,0.5\n7,1,0.6\n", "line 3: user 7 has two rows for level 1"),
    ],
)
def test_mistakes_in_a_file_of_chances_are_named(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "chances.csv").write_text(content)
    with pytest.raises(InputError, match=complaint):
        USERS.create("sober", {"chances_file": str(tmp_path / "chances.csv")})


class GivesUp(WrappedUser):
    """Takes back what has waited for an hour, and says so."""

    def next_time(self) -> float:
        return min([super().next_time(), *(since + HOUR for since in self.waiting.values())])

    def submit(self, now: float) -> list[Action]:
        late = [job for job, since in self.waiting.items() if since + HOUR <= now]
        return [*super().submit(now), *(self.withdraw(job, "gave_up=yes") for job in late)]


def test_who_withdraws_a_job_adds_to_its_note() -> None:
    """What users with feedback note about it stays, so that its lateness is known."""
    (inner,) = ThinkTime().users(workload_of([Record(user=2, submit=60, run_time=HOUR)]))
    user = GivesUp(inner)
    (submission,) = user.submit(60)
    assert isinstance(submission, Submission)
    (withdrawal,) = user.submit(60 + HOUR)
    assert isinstance(withdrawal, Withdrawal)
    assert withdrawal.job_id == submission.job.id
    assert withdrawal.note == "user=2 session=0 recorded=60 gave_up=yes"


def test_what_was_remarked_on_a_job_stays_when_it_is_withdrawn() -> None:
    (inner,) = ThinkTime().users(workload_of([Record(user=2, submit=60, run_time=HOUR)]))
    user = GivesUp(inner)
    user.submit(60)
    assert user.remark("w0!1", "left=5").note == "user=2 session=0 recorded=60 left=5"
    (withdrawal,) = user.submit(60 + HOUR)
    assert withdrawal.note == "user=2 session=0 recorded=60 left=5 gave_up=yes"


def test_chances_that_grow_are_pooled_with_those_before() -> None:
    """By hand: 0.5 and 0.7 are 0.6; with weights 1 and 3 they are 0.65; and 1.0 pulls up all that is less."""
    assert _never_growing([0.9, 0.5, 0.7], [1, 1, 1]).tolist() == pytest.approx([0.9, 0.6, 0.6])
    assert _never_growing([0.9, 0.5, 0.7], [1, 1, 3]).tolist() == pytest.approx([0.9, 0.65, 0.65])
    assert _never_growing([0.8, 0.2, 0.5, 1.0], [2, 1, 1, 4]).tolist() == pytest.approx([0.8, *[4.7 / 6] * 3])
    assert _never_growing([0.6, 0.2, 1.0], [1, 1, 2]).tolist() == pytest.approx([0.7] * 3)
    assert _never_growing([0.9, 0.5, 0.5], [1, 1, 1]).tolist() == [0.9, 0.5, 0.5]
