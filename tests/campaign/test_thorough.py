"""Whether conclusions survive variations of a study: which variations there are, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from batsched_py.analysis.runs import Paired
from batsched_py.analysis.runs.comparisons import Comparison
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.review.thorough import SESSION_RULES, THOROUGH, _survival, thorough, variations
from batsched_py.campaign.store import Campaign, conduct, planned_campaign, runs_to_do
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from tests.campaign.test_review import plan, write
from tests.campaigns import Here

LOGS = {"kth": {"file": "kth.swf", "url": "https://x/kth.swf", "changes": ["sizes most=8"]}}


def varied(**content: Any) -> dict[str, dict[str, Any]]:
    """The content of each variation of a plan, by its name."""
    found = variations({"logs": LOGS, "schedulers": {"easy": {}}, **content}, lambda name: name)
    return {each.name: each.content for each in found}


def test_logs_are_shaken_after_all_other_changes() -> None:
    found = varied()
    assert list(found) == [f"shaken-{seed}" for seed in range(1, 11)]
    assert found["shaken-3"]["logs"] == {
        "kth": {"file": "kth.swf", "changes": ["sizes most=8", "shake seed=3"]}
    }


def test_loads_are_made_in_the_two_other_ways() -> None:
    found = varied(
        loads=[1.0, 1.2],
        exclude=[{"scheduler": "fcfs", "load": 1.2}, {"scheduler": "sjf", "load": [0.8, 1.0]}],
    )
    assert list(found)[10:] == ["load1.2-run-times", "load1.2-sizes"]
    one = found["load1.2-sizes"]
    assert one["logs"]["kth"]["changes"][-1] == "load factor=1.2 by=sizes"
    assert "loads" not in one
    assert one["exclude"] == [{"scheduler": "fcfs"}]


def test_sessions_are_cut_by_each_rule_where_users_have_sessions() -> None:
    users = {"stay": {"name": "rigid"}, "think-time": {"options": {"edges": "all"}}}
    found = varied(users=users)
    assert len(found) == 10 + len(SESSION_RULES)
    assert found["sessions-arrival360"]["users"] == {
        "stay": {"name": "rigid"},
        "think-time": {"options": {"edges": "all", "sessions": "arrival:360"}},
    }
    assert len(varied(users={"stay": {"name": "rigid"}})) == 10
    assert len(varied(users={"think-time": {"sessions": ["arrival:20", "max:20"]}})) == 10


def test_logs_that_are_played_together_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"logs\.two: files that are played together"):
        varied(logs={"two": {"file": ["a.json", "b.json"]}})


def comparison(better: str, worse: str, shown: bool = True) -> Comparison:
    """Of two policies on one log."""
    paired = Paired.of([-1.0, -2.0, -3.0])
    p_value = 0.01 if shown else 0.3
    return Comparison({"log": "kth"}, "mean_waiting_time", "s", better, worse, paired, "part", p_value)


A, B = comparison("easy", "fcfs"), comparison("fcfs", "easy")
DIMLY_A = comparison("easy", "fcfs", shown=False)


@pytest.mark.parametrize(
    ("concluded", "seen", "verdict", "told"),
    [
        (A, [A] * 10, "ok", "1 of 1 differences that are shown survive 10 shaken logs"),
        (A, [A] * 9 + [B], "warn", "0 of 1 differences"),
        (A, [A] * 8 + [B] * 2, "fail", "(kth): turned round in 2, not shown in 0 of 10"),
        (A, [A] * 4 + [DIMLY_A] * 6, "warn", "turned round in 0, not shown in 6 of 10"),
        (DIMLY_A, [DIMLY_A] * 10, "ok", "0 of 0 differences"),
        (DIMLY_A, [A] * 3 + [B] * 2, "fail", "shown in 3, and the other way round in 2 of 5"),
    ],
)
def test_what_becomes_of_a_difference(
    concluded: Comparison, seen: list[Comparison], verdict: str, told: str
) -> None:
    check = _survival("shaken logs", [concluded], [("", [each]) for each in seen])
    assert check.verdict == verdict
    assert told in check.found


def test_a_load_is_about_the_same_load() -> None:
    under = Comparison({**A.where, "load": "1.2"}, *(getattr(A, name) for name in A.__struct_fields__[1:]))
    other = Comparison({**A.where, "load": "1"}, *(getattr(A, name) for name in A.__struct_fields__[1:]))
    check = _survival("ways to make a load", [under, other], [("1.2", [A]), ("1.2", [A])])
    assert check.found == "1 of 1 differences that are shown survive 2 ways to make a load"


def test_only_a_campaign_is_simulated_again(tmp_path: Path) -> None:
    (tmp_path / "x_jobs.csv").write_text("")
    told = CliRunner().invoke(batsched_py, ["review", str(tmp_path / "x_jobs.csv"), "--thorough"])
    assert told.exit_code != 0
    assert "--thorough is for a campaign that has run" in told.output


FITTED = """
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.fcfs import Fcfs

class Fitted(Easy):
    \"\"\"EASY if the second job comes as in the log that it knows; else FCFS that leaves hosts idle.\"\"\"

    name = "fitted"

    def schedule(self, cluster):
        self._times = getattr(self, "_times", ()) + (cluster.now,)
        if self._times[1:2] == (SECOND,):
            super().schedule(cluster)
        elif cluster.nb_free >= 8:
            cluster.start_from_head()
"""


@pytest.mark.slow
def test_a_policy_that_is_fitted_to_one_log_is_found(tmp_path: Path) -> None:
    """It is better than FCFS on the log as recorded, and on the one shaken log with the same second job."""
    log = write(tmp_path / "a.swf", 1, load=0.7, days=12)
    first, second = (float(line.split()[1]) for line in log.read_text().splitlines()[2:4])
    (tmp_path / "fitted.py").write_text(FITTED.replace("SECOND", str(second - first)))
    file = plan(
        tmp_path,
        head='metrics = ["mean_waiting_time"]\nbaseline = "fcfs"\nparts = "12h"\n',
        schedulers="[schedulers]\nfcfs = {}\nfitted = {name = 'fitted.py:Fitted'}\n",
        logs='a = {file = "a.swf"}\n',
    )
    read = read_plan(file)
    campaign = planned_campaign(read, tmp_path / "out")
    assert all(each.error is None for each in conduct(campaign, runs_to_do(read, campaign), Here()))
    campaign = Campaign.open(campaign.folder)
    (check,) = thorough(campaign, Here())
    assert check.verdict == "fail"
    assert "fitted better than fcfs in mean_waiting_time" in check.found
    assert "turned round in 9, not shown in 0 of 10" in check.found
    assert len(list((tmp_path / "out" / THOROUGH).iterdir())) == 10

    class Nobody:
        def run(self, runs: object) -> Any:
            raise AssertionError("all was done before")

    assert thorough(campaign, Nobody()) == [check]
