"""What the built-in Batsim makes of profiles, above all of those that need a network."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from batsched_py.engines.python import Batsim
from batsched_py.errors import InputError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.profiles import (
    Composed,
    DataStaging,
    Delay,
    FileSystemAccess,
    Homogeneous,
    HomogeneousTotal,
    Parallel,
    Profile,
    Receive,
    Send,
)
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.drive import GIGA, Drive, execute, platform, workload

COMMUNICATING: dict[str, dict[str, Any]] = {
    "parallel": {"type": "parallel", "cpu": [GIGA, GIGA], "com": [0, 1, 0, 0]},
    "parallel_homogeneous": {"type": "parallel_homogeneous", "cpu": GIGA, "com": 1},
    "parallel_homogeneous_total": {"type": "parallel_homogeneous_total", "cpu": 2 * GIGA, "com": 1},
    "parallel_homogeneous_pfs": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1},
    "data_staging": {"type": "data_staging", "nb_bytes": 1, "from": "here", "to": "there"},
}
STAGING = HostSet.parse("0-1")


def job(profile: dict[str, Any], size: int = 2) -> Any:
    return workload({"id": "a", "res": size, "profile": "p"}, profiles={"p": profile})


@pytest.mark.parametrize("kind", COMMUNICATING)
def test_what_sends_bytes_is_refused_by_name(kind: str) -> None:
    message = rf"workload 'w0': profile 'p' \(type {kind}\) sends bytes, .* --ignore-communication"
    with pytest.raises(InputError, match=message):
        Batsim(Setup(platform(), [job(COMMUNICATING[kind])]))


@pytest.mark.parametrize("kind", ["smpi", "usage_trace"])
def test_what_replays_a_trace_is_refused_even_without_communication(kind: str) -> None:
    with pytest.raises(
        InputError, match=rf"profile 'p' replays a trace \(type {kind}\), which needs SimGrid"
    ):
        Batsim(Setup(platform(), [job({"type": kind, "trace": "t"})], ignore_communication=True))


HUGE = 10**400


@pytest.mark.parametrize(
    ("profile", "fault"),
    [
        (Delay(nan), "needs a finite number as `delay`, not nan"),
        (Delay(inf), "needs a finite number as `delay`, not inf"),
        (Delay(HUGE), "needs a finite number as `delay`, not 1000"),
        (Delay("3"), "needs a finite number as `delay`, not '3'"),  # type: ignore[arg-type]
        (Delay(None), "needs a finite number as `delay`, not None"),  # type: ignore[arg-type]
        (Delay(1, return_code=-1), "needs an integer of 0 or more as `ret`, not -1"),
        (Homogeneous(inf), "needs a number that is not negative as `cpu`, not inf"),
        (Homogeneous(HUGE), "needs a number that is not negative as `cpu`, not 1000"),
        (Homogeneous(1, nan), "needs a number that is not negative as `com`, not nan"),
        (HomogeneousTotal(nan), "needs a number that is not negative as `cpu`, not nan"),
        (Parallel((1, nan), (0,) * 4), "needs a number that is not negative as `cpu`, not nan"),
        (Parallel((1, 1), (0, 0, inf, 0)), "needs a number that is not negative as `com`, not inf"),
        (Composed(("q",), inf), "needs an integer of 1 or more as `repeat`, not inf"),  # type: ignore[arg-type]
        (Composed(("q",), 0), "needs an integer of 1 or more as `repeat`, not 0"),
        (Send({}, inf), "needs a finite number as `sleeptime`, not inf"),
        (Receive(poll_seconds=nan), "needs a finite number as `polltime`, not nan"),
        (FileSystemAccess(bytes_read=inf), "needs a number that is not negative as `bytes_to_read`, not inf"),
        (DataStaging(nan, "a", "b"), "needs a number that is not negative as `nb_bytes`, not nan"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_numbers_that_are_none_are_refused_by_name(profile: Profile, fault: str) -> None:
    """Files and messages cannot say such, but who makes profiles in Python can."""
    jobs = Workload(name="w0", jobs=[], profiles={"p": profile, "q": Delay(1)})
    with pytest.raises(InputError) as static:
        Batsim(Setup(platform(), [jobs], ignore_communication=True))
    assert str(static.value).startswith(f"workload 'w0': profile 'p' {fault}")
    drive = Drive(Batsim(Setup(platform(), [], ev.Settings(dynamic_jobs=True), ignore_communication=True)))
    with pytest.raises(RuleBroken) as dynamic:
        drive.reply(ev.RegisterProfile("w0", "p", profile))
    assert f"profile 'p' {fault}" in str(dynamic.value)


def test_an_unknown_type_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="profile 'p' has the type 'flight'; known are delay, parallel"):
        Batsim(Setup(platform(), [job({"type": "flight"})]))


@pytest.mark.parametrize("kind", ["parallel", "parallel_homogeneous", "parallel_homogeneous_total"])
def test_without_communication_only_the_computation_takes_time(kind: str) -> None:
    drive = Drive(Batsim(Setup(platform(), [job(COMMUNICATING[kind])], ignore_communication=True)))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-1")).time == 1.0


def test_without_communication_reading_takes_no_time() -> None:
    profile = COMMUNICATING["parallel_homogeneous_pfs"]
    drive = Drive(Batsim(Setup(platform(2, storages=1), [job(profile)], ignore_communication=True)))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-1")).time == 0.0


def test_without_communication_an_io_job_is_left_out() -> None:
    drive = Drive(Batsim(Setup(platform(), [job({"type": "delay", "delay": 7})], ignore_communication=True)))
    drive.reply()
    completed = drive.until(
        ev.JobCompleted, ev.ExecuteJob("w0!a", STAGING, io_job=ev.IoJob("io", HostSet.parse("2")))
    )
    assert completed.time == 7.0


def test_staging_needs_to_know_its_storages() -> None:
    drive = Drive(
        Batsim(
            Setup(platform(2, storages=2), [job(COMMUNICATING["data_staging"])], ignore_communication=True)
        )
    )
    drive.reply()
    with pytest.raises(RuleBroken, match="job w0!a needs a `storage_mapping` to a storage host for 'there'"):
        drive.reply(ev.ExecuteJob("w0!a", STAGING, storage_mapping={"here": 2, "there": 1}))


def test_staging_between_storages_takes_no_time_without_communication() -> None:
    drive = Drive(
        Batsim(
            Setup(platform(2, storages=2), [job(COMMUNICATING["data_staging"])], ignore_communication=True)
        )
    )
    drive.reply()
    decision = ev.ExecuteJob("w0!a", STAGING, storage_mapping={"here": 2, "there": 3})
    assert drive.until(ev.JobCompleted, decision).time == 0.0


def test_a_file_system_must_be_named_when_there_are_several() -> None:
    profile = COMMUNICATING["parallel_homogeneous_pfs"]
    drive = Drive(Batsim(Setup(platform(2, storages=2), [job(profile)], ignore_communication=True)))
    drive.reply()
    with pytest.raises(RuleBroken, match="needs a `storage_mapping` to a storage host for 'pfs'"):
        drive.reply(execute("a", "0-1"))


@pytest.mark.parametrize("storages", [1, 2])
def test_a_batsim_5_looks_for_a_storage_of_that_name_and_for_nothing_else(storages: int) -> None:
    machine = platform(2, storages=storages)
    of_that_name = {**COMMUNICATING["parallel_homogeneous_pfs"], "storage": machine.storages[0].name}
    named = Setup(machine, [job(of_that_name)], ignore_communication=True, storages_by_name=True)
    drive = Drive(Batsim(named))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-1")).time == 0.0
    for mapping in (None, {"other": 2}):
        other = [job(COMMUNICATING["parallel_homogeneous_pfs"])]
        drive = Drive(Batsim(Setup(machine, other, ignore_communication=True, storages_by_name=True)))
        drive.reply()
        with pytest.raises(RuleBroken, match="needs a `storage_mapping` to a storage host for 'pfs'"):
            drive.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), storage_mapping=mapping))


def test_work_that_is_given_in_total_may_run_on_any_number_of_hosts() -> None:
    profile = {"type": "parallel_homogeneous_total", "cpu": 12 * GIGA, "com": 0}
    drive = Drive(Batsim(Setup(platform(4), [job(profile)])))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-3")).time == 3.0


def test_a_sequence_of_such_work_may_too() -> None:
    profiles = {
        "p": {"type": "composed", "seq": ["t"], "repeat": 2},
        "t": {"type": "parallel_homogeneous_total", "cpu": 12 * GIGA, "com": 0},
    }
    jobs = workload({"id": "a", "res": 2, "profile": "p"}, profiles=profiles)
    drive = Drive(Batsim(Setup(platform(4), [jobs])))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-3")).time == 6.0


def test_work_in_total_may_be_mapped_as_one_likes() -> None:
    profile = {"type": "parallel_homogeneous_total", "cpu": 12 * GIGA, "com": 0}
    drive = Drive(Batsim(Setup(platform(4), [job(profile)])))
    drive.reply()
    assert drive.until(ev.JobCompleted, execute("a", "0-1", mapping=[0, 1, 1])).time == 8.0


def test_registered_numbers_are_read_with_six_decimals() -> None:
    drive = Drive(Batsim(Setup(platform(1), [], ev.Settings(dynamic_jobs=True))))
    job = workload({"id": "a", "profile": "p"}).jobs[0]
    drive.until(
        ev.JobCompleted,
        ev.RegisterProfile("w0", "p", Delay(1.23456789)),
        ev.RegisterJob(job),
        execute("a", "0"),
        ev.RegistrationFinished(),
    )
    assert drive.now == 1.234568
