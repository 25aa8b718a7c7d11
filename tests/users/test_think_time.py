"""Users with think times: examples by hand, and what must hold for any log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.users import USERS, User
from batsched_py.users.think_time import ThinkTime
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import Delimiter, cut_workload
from tests.feedback import Arbitrary, Record, records, replay, rows, submissions, workload_of

DELIMITERS = st.builds(
    "{}:{}".format, st.sampled_from(["arrival", "last", "max"]), st.sampled_from([0, 0.05, 0.25, 60])
)
EDGES = st.sampled_from(["reduced", "all"])
SIZES = st.integers(1, 3)
NO_WAIT = st.just(0)
WAITS = st.integers(0, 20)


def users(workload: Workload, sessions: str = "arrival:0", edges: str = "reduced") -> list[User]:
    return USERS.create("think-time", {"sessions": sessions, "edges": edges}).users(workload)


def test_a_session_starts_after_its_predecessor_and_the_think_time() -> None:
    """Recorded, the first job ended at 10 and the user thought for 5 s; here it ends at 20."""
    workload = workload_of([Record(1, 0, 10), Record(1, 15, 1)])
    assert submissions(replay(users(workload), hosts=1, speed=0.5)) == {"1": 0, "2": 25}


def test_a_session_waits_for_all_its_predecessors_and_their_think_times() -> None:
    """Job 3 was submitted 6 s after job 1 had ended and 1 s after job 2 had; now these end at 20 and 22."""
    workload = workload_of([Record(1, 0, 10), Record(1, 1, 10.5, wait=3.5), Record(1, 16, 1)])
    assert submissions(replay(users(workload), hosts=2, speed=0.5))["3"] == max(20 + 6, 22 + 1)


def test_jobs_of_a_session_keep_their_distances() -> None:
    workload = workload_of([Record(1, 0, 100), Record(1, 130, 1), Record(1, 150, 1), Record(1, 190, 1)])
    late = submissions(replay(users(workload, "max:1"), hosts=4, speed=0.5))
    assert late == {"1": 0, "2": 130, "3": 150, "4": 190}
    late = submissions(replay(users(workload, "max:0.25"), hosts=4, speed=0.5))
    assert late == {"1": 0, "2": 230, "3": 230 + 20 + 1, "4": 230 + 20 + 1 + 40 + 1}


def test_a_root_session_starts_as_recorded() -> None:
    """Both jobs overlapped as recorded, so the second one never waited for the first."""
    workload = workload_of([Record(1, 0, 10), Record(1, 5, 10)])
    assert submissions(replay(users(workload), hosts=1, speed=0.1)) == {"1": 0, "2": 5}


def test_users_do_not_wait_for_each_other() -> None:
    workload = workload_of([Record(1, 0, 10), Record(2, 15, 10)])
    assert submissions(replay(users(workload), hosts=1, speed=0.1)) == {"1": 0, "2": 15}


def test_a_rejected_job_is_over_when_it_is_rejected() -> None:
    """Job 1 is too wide for the machine; recorded, it had run for 10 s."""
    workload = workload_of([Record(1, 0, 10, size=5), Record(1, 15, 1)])
    assert submissions(replay(users(workload), hosts=4)) == {"1": 0, "2": 5}


def test_rejections_may_follow_each_other_at_one_time() -> None:
    workload = workload_of([Record(1, 0, 7, size=5), Record(1, 7, 3, size=5), Record(1, 10, 1)])
    assert submissions(replay(users(workload), hosts=4)) == {"1": 0, "2": 0, "3": 0}


def test_a_killed_job_is_over_when_it_is_killed() -> None:
    """Job 3 is killed when job 1 ends, 10 s after both were started; the user thought for 7 s."""
    workload = workload_of([Record(2, 0, 10), Record(9, 0, 0), Record(1, 0, 100), Record(1, 107, 1)])
    assert submissions(replay(users(workload), hosts=4, scheduler=Arbitrary()))["4"] == 17


def test_the_note_tells_user_session_and_recorded_submission() -> None:
    workload = workload_of([Record(7, 0, 10), Record(7, 5, 1), Record(7, 100, 1)])
    notes = {n: row["metadata"] for n, row in rows(replay(users(workload, "last:1"), hosts=4)).items()}
    assert notes == {
        "1": "user=7 session=0 recorded=0",
        "2": "user=7 session=0 recorded=5",
        "3": "user=7 session=1 recorded=100",
    }


@given(records(SIZES, NO_WAIT), DELIMITERS, EDGES, st.sampled_from([1, 1000]))
def test_where_nothing_waits_submissions_are_those_recorded(
    log: list[Record], sessions: str, edges: str, unit: int
) -> None:
    """On an infinite machine, with jobs as long as recorded, in seconds or in thousandths of them."""
    log = [record._replace(submit=record.submit / unit, run_time=record.run_time / unit) for record in log]
    workload = workload_of(log)
    submitted = submissions(replay(users(workload, sessions, edges), hosts=100))
    assert submitted == {job.name: job.submission_time for job in workload.jobs}


@given(records(SIZES, WAITS), DELIMITERS, st.sampled_from([1.5, 2.0, 7.0]))
def test_speeding_hosts_up_makes_no_root_session_start_later(
    log: list[Record], sessions: str, factor: float
) -> None:
    workload = workload_of(log)
    roots = [
        session
        for cut in cut_workload(workload, Delimiter.parse(sessions)).values()
        for session, predecessors in zip(cut, SessionGraph(cut).nb_predecessors, strict=True)
        if predecessors == 0
    ]
    before = submissions(replay(users(workload, sessions), hosts=4, scheduler="easy"))
    after = submissions(replay(users(workload, sessions), hosts=4, scheduler="easy", speed=factor))
    for session in roots:
        first = session.jobs[0].name
        assert after[first] <= before[first] == session.start


@given(records(st.integers(1, 5), WAITS), DELIMITERS, EDGES)
def test_no_job_is_lost_or_submitted_twice(log: list[Record], sessions: str, edges: str) -> None:
    """Whatever is rejected, as too wide or by the policy, and whatever is killed."""
    workload = workload_of(log)
    submitted = rows(replay(users(workload, sessions, edges), hosts=4, scheduler=Arbitrary()))
    assert sorted(submitted) == sorted(job.name for job in workload.jobs)


@given(
    records(st.integers(1, 5), WAITS),
    DELIMITERS,
    st.sampled_from(["easy", "arbitrary"]),
    st.sampled_from([0.0, 12.3456789]),
)
def test_the_wire_and_its_settings_change_nothing(
    log: list[Record], sessions: str, policy: str, delay: float
) -> None:
    """On hosts whose speed makes times that six decimals cannot tell, with a quick or a slow scheduler."""
    workload = workload_of(log)

    def jobs_csv(wired: bool, acknowledge: bool, reuse: bool) -> str:
        scheduler = Arbitrary() if policy == "arbitrary" else policy
        return replay(users(workload, sessions), 4, scheduler, 0.7, wired, acknowledge, reuse, delay)

    for reuse in (False, True):
        in_process = jobs_csv(wired=False, acknowledge=False, reuse=reuse)
        for acknowledge in (False, True):
            assert jobs_csv(wired=True, acknowledge=acknowledge, reuse=reuse) == in_process
    reused, fresh = (rows(jobs_csv(False, False, reuse)) for reuse in (True, False))
    for number in reused:
        assert fresh[number] == reused[number] | {"profile": f"job_{number}"}


def test_a_bad_rule_for_sessions_is_named() -> None:
    with pytest.raises(InputError, match="session delimiter 'often:60'"):
        ThinkTime("often:60")
