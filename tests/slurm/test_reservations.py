"""Which nodes a job may use beside reservations, by Slurm's rules."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.settings import Configuration, Qos, Reservation, Scheduling, Selection
from batsched_py.slurm.policy.state import Reservations
from batsched_py.slurm.reservations import written_out
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin

#: Nodes are bits: the first reservation has nodes 0 and 1, the second has nodes 2 and 3, of four in all.
NODES = {"first": 0b0011, "second": 0b1100, "all": 0b1111}
MACHINE: Any = SimpleNamespace(all=0b1111, written=NODES.__getitem__)
FIRST = Reservation(name="one", start=100, end=200, nodes="first", users=("ada",))
SECOND = Reservation(name="two", start=100, end=200, nodes="second", users=("ada",))


def job(reservation: str = "", user: str = "ada", account: str = "") -> Any:
    return SimpleNamespace(
        fields=SimpleNamespace(runs=False, reservation=reservation, account=account),
        job=SimpleNamespace(user=user),
        partition=SimpleNamespace(nodes=0b1111),
    )


def test_a_job_that_names_the_second_of_two_reservations_gets_its_nodes() -> None:
    known = Reservations([FIRST, SECOND], MACHINE)
    assert known.allowed(job("two"), 150, 10, now=0, moves=False) == (0b1100, 150, False)
    assert known.allowed(job("one"), 150, 10, now=0, moves=False) == (0b0011, 150, False)


def test_a_job_that_names_one_starts_while_it_lasts_and_is_of_those_it_is_for() -> None:
    known = Reservations([FIRST, SECOND], MACHINE)
    for start, may in ((99, False), (100, True), (200, True), (201, False)):
        assert (known.allowed(job("two"), start, 10, now=0, moves=False) is not None) == may
    assert known.allowed(job("two", "bob"), 150, 10, now=0, moves=False) is None
    assert known.allowed(job("three"), 150, 10, now=0, moves=False) is None


def test_a_job_that_names_none_is_kept_off_those_that_it_would_meet() -> None:
    known = Reservations([FIRST, SECOND], MACHINE)
    assert known.allowed(job(), 0, 100, now=0, moves=False) == (0b1111, 0, False)
    assert known.allowed(job(), 0, 101, now=0, moves=False) == (0, 0, True)
    assert known.allowed(job(), 199, 10, now=0, moves=False) == (0, 199, True)
    assert known.allowed(job(), 200, 10, now=0, moves=False) == (0b1111, 200, False)
    assert Reservations([FIRST], MACHINE).allowed(job(), 150, 10, now=0, moves=False) == (0b1100, 150, True)


def test_one_that_is_not_known_yet_keeps_nobody_off() -> None:
    late = Reservation(name="late", start=100, end=200, nodes="all", created=50)
    known = Reservations([late], MACHINE)
    assert known.allowed(job(), 150, 10, now=49, moves=False) == (0b1111, 150, False)
    assert known.allowed(job(), 150, 10, now=50, moves=False) == (0, 150, True)
    assert [known.matter(job(), now) for now in (49, 50, 199, 200)] == [False, True, True, False]
    assert known.matter(job("late"), 300)


def test_upkeep_of_all_nodes_moves_the_start_to_its_end() -> None:
    upkeep = Reservation(name="upkeep", start=100, end=200, nodes="all", flags=("maint",))
    known = Reservations([upkeep], MACHINE)
    assert known.allowed(job(), 150, 10, now=0, moves=True) == (0b1111, 200, False)
    assert known.allowed(job(), 150, 10, now=0, moves=False) is None


def test_a_start_is_moved_ten_times_and_then_given_up() -> None:
    upkeep = [
        Reservation(name=f"u{place}", start=place, end=place + 1, nodes="all", flags=("maint",))
        for place in range(11)
    ]
    assert Reservations(upkeep[:10], MACHINE).allowed(job(), 0, 10, now=0, moves=True) == (0b1111, 10, False)
    assert Reservations(upkeep, MACHINE).allowed(job(), 0, 10, now=0, moves=True) is None


def test_a_job_in_one_is_kept_off_the_nodes_of_another_unless_they_may_overlap() -> None:
    whole = Reservation(name="whole", start=100, end=200, nodes="all", users=("ada",))
    overlapping = Reservation(
        name="over", start=100, end=200, nodes="all", users=("ada",), flags=("overlap",)
    )
    known = Reservations([FIRST, whole, overlapping], MACHINE)
    assert known.allowed(job("whole"), 150, 10, now=0, moves=False) == (0, 150, True)
    assert known.allowed(job("over"), 150, 10, now=0, moves=False) == (0b1111, 150, False)


def test_a_flexible_one_binds_its_jobs_to_neither_its_nodes_nor_its_time() -> None:
    flexible = Reservation(name="two", start=100, end=200, nodes="second", users=("ada",), flags=("flex",))
    known = Reservations([FIRST, flexible], MACHINE)
    assert known.allowed(job("two"), 0, 10, now=0, moves=False) == (0b1111, 0, False)
    assert known.allowed(job("two"), 150, 500, now=0, moves=False) == (0b1100, 150, True)
    assert known.allowed(job("two", "bob"), 150, 10, now=0, moves=False) is None
    assert (known.last_end(job("two")), known.last_end(job("one"))) == (inf, 200)


class Patient(Twin):
    """Fails if it is called more often than the few jobs of a test need, as where a run does not end."""

    nb_calls = 0

    def schedule(self, cluster: Cluster) -> None:
        self.nb_calls += 1
        assert self.nb_calls < 5000
        super().schedule(cluster)


def starts(
    configuration: Configuration, *jobs: tuple[float, float, dict[str, Any]]
) -> dict[str, tuple[float, float]]:
    """When jobs of 4 cores start and end on two nodes, by submission, run time and what they tell Slurm."""
    platform = platform_of([NodeKind(["n1", "n2"], 4, {})], {}, "test")
    made = [
        Job(f"w0!{number}", at, 4, 9000.0, str(length), {"user": told.pop("user"), "slurm": told})
        for number, (at, length, told) in enumerate(jobs, start=1)
    ]
    profiles = {str(length): Delay(length) for _, length, _ in jobs}
    rows = rows_of(DecisionProcess(Patient(configuration)), Workload("w0", made, profiles, 8), platform)
    ran = (row for row in rows if row["starting_time"])
    return {row["job_id"]: (float(row["starting_time"]), float(row["finish_time"])) for row in ran}


def test_a_magnetic_one_draws_the_jobs_of_its_users() -> None:
    """Both nodes are wanted; bob has one of them kept for him, and asks for nothing."""

    def bob_starts(*flags: Any) -> float:
        course = Reservation(name="course", start=0, end=50_000, nodes="n2", users=("bob",), flags=flags)
        configuration = Configuration(selection=Selection(type="cons_tres"), reservations=(course,))
        found = starts(configuration, (0.0, 5000.0, {"user": "ann"}), (10.0, 50.0, {"user": "ann"}),
                       (20.0, 50.0, {"user": "bob"}))  # fmt: skip
        assert found["2"][0] > 5000
        return found["3"][0]

    assert bob_starts() > 5000
    assert bob_starts("magnetic") < 60


def test_a_job_ends_with_its_reservation() -> None:
    def ends(*flags: Any, **scheduling: Any) -> float:
        course = Reservation(name="course", start=0, end=1000, nodes="n2", users=("bob",), flags=flags)
        configuration = Configuration(
            selection=Selection(type="cons_tres"), reservations=(course,), scheduling=Scheduling(**scheduling)
        )
        return starts(configuration, (0.0, 5000.0, {"user": "bob", "reservation": "course"}))["1"][1]

    assert 1000 <= ends() < 1040, "at the next look at time limits"
    assert 1600 <= ends(resv_over_run=600.0) < 1640
    assert ends("flex") > 5000


@pytest.mark.parametrize(("flag", "count"), [("hourly", 336), ("daily", 14), ("weekly", 2)])
def test_one_that_comes_again_does_so_for_two_weeks_if_nothing_tells_how_long(flag: Any, count: int) -> None:
    night = Reservation(name="night", start=100, end=200, nodes="all", flags=(flag, "maint"))
    written = written_out(night, None)
    assert len(written) == count
    assert (written[0].start, written[0].end, written[0].flags) == (100, 200, ("maint",))
    period = 14 / count * 86400
    assert (written[-1].start, written[-1].created) == (100 + 13 * 86400 - (period - 86400), written[-2].end)


YEAR = 365 * 86400
OVER = Reservation(name="over", start=0, end=1000, nodes="n2", users=("eve",))
LIMITED = Configuration(enforce=("limits", "qos"), qos=(Qos(name="normal", grp_tres={"cpu": 2}),))


@pytest.mark.parametrize(
    ("reservation", "count"),
    [
        pytest.param(OVER, 2, id="over"),
        pytest.param(replace(OVER, end=YEAR), 2, id="a year"),
        pytest.param(replace(OVER, start=YEAR, end=YEAR + 60), 2, id="in a year"),
        pytest.param(replace(OVER, nodes="n[1-2]", flags=("maint",), end=inf), 2, id="without end"),
        pytest.param(None, 150, id="more jobs than are looked at"),
    ],
)
def test_a_run_ends_though_jobs_wait_for_ever(reservation: Reservation | None, count: int) -> None:
    """A limit keeps all of them from starting; only where time may matter are they looked at again."""
    reservations = () if reservation is None else (reservation,)
    configuration = replace(LIMITED, reservations=reservations)
    assert starts(configuration, *[(5.0 * place, 50.0, {"user": "ann"}) for place in range(count)]) == {}


@pytest.mark.parametrize("flags", [(), ("maint",)])
def test_jobs_start_when_a_reservation_of_a_year_is_over(flags: Any) -> None:
    """At the next look at the queue, or in the next cycle."""
    whole = Reservation(name="whole", start=0, end=YEAR, nodes="n[1-2]", users=("eve",), flags=flags)
    job = (10.0, 50.0, {"user": "ann"})
    found = starts(Configuration(reservations=(whole,)), (0.0, 50.0, {"user": "ann"}), job)
    assert len(found) == 2 and all(YEAR <= start < YEAR + 130 for start, _ in found.values())


def test_accounts_may_use_a_reservation_and_some_may_not() -> None:
    course = Reservation(name="course", start=0, end=9, nodes="all", accounts=("class",), users=("-eve",))
    known = Reservations([course], MACHINE)
    assert known.allowed(job("course", "bob", "class"), 0, 5, now=0, moves=False) is not None
    assert known.allowed(job("course", "eve", "class"), 0, 5, now=0, moves=False) is None
    assert known.allowed(job("course", "bob", "other"), 0, 5, now=0, moves=False) is None


def test_the_next_end_is_rounded_up_to_the_grid() -> None:
    known = Reservations([FIRST, Reservation(name="x", start=0, end=95, nodes="all")], MACHINE)
    assert known.next_end(0, 60) == 120
    assert known.next_end(95, 60) == 120
    assert known.next_end(96, 60) == 240
    assert known.next_end(201, 60) == 0
    assert known.next_end(0, 60, origin=30) == 150, "125 s after the beginning of a step, up to 180"
