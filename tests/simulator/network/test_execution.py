"""Jobs that communicate in the built-in Batsim, on networks small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.engines.python import Batsim
from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.network.routing import SimpleNetwork
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.simulator.setup import Setup
from tests.drive import Drive, execute, workload
from tests.processes import call_here

MEGA = 1e6


def homogeneous(sent: float, cpu: float = 0) -> dict[str, Any]:
    return {"type": "parallel_homogeneous", "cpu": cpu, "com": sent}


def machine(hosts: int = 8, **network: str) -> Platform:
    """Hosts behind one switch, with 100 MB/s each unless told otherwise."""
    return Platform.homogeneous(hosts, network=SimpleNetwork(**{"bandwidth": "100MBps"} | network))


def drive(
    platform: Platform, profile: dict[str, Any], *sizes: int, settings: ev.Settings | None = None, **more: Any
) -> Drive:
    """Jobs a, b, ... of these sizes, which wait."""
    jobs = [{"id": name, "res": size, "profile": "p"} for name, size in zip("abcdef", sizes, strict=False)]
    waiting = workload(*jobs, profiles={"p": profile} | more)
    conversation = Drive(Batsim(Setup(platform, [waiting], settings or ev.Settings())))
    conversation.reply()
    return conversation


def ends(conversation: Drive) -> dict[str, float]:
    conversation.finish()
    return {event.job_id.removeprefix("w0!"): event.time for event in conversation.all(ev.JobCompleted)}


def test_each_host_sends_to_each_other_over_its_own_link() -> None:
    conversation = drive(machine(), homogeneous(100 * MEGA), 4)
    conversation.reply(execute("a", "0-3"))
    assert ends(conversation) == {"a": 3.0}


def test_jobs_on_a_backbone_slow_each_other_down() -> None:
    conversation = drive(machine(backbone="100MBps"), homogeneous(100 * MEGA), 2, 2)
    conversation.reply(execute("a", "0-1"), execute("b", "2-3"))
    assert ends(conversation) == {"a": 4.0, "b": 4.0}


def test_jobs_on_links_of_their_own_do_not() -> None:
    conversation = drive(machine(), homogeneous(100 * MEGA), 2, 2)
    conversation.reply(execute("a", "0-1"), execute("b", "2-3"))
    assert ends(conversation) == {"a": 1.0, "b": 1.0}


def test_computing_and_sending_take_as_long_as_the_longer_of_both() -> None:
    speed = Platform.homogeneous(1).hosts[0].speed
    conversation = drive(machine(), homogeneous(100 * MEGA, 5 * speed), 2)
    conversation.reply(execute("a", "0-1"))
    assert ends(conversation) == {"a": 5.0}


def test_latency_comes_first_and_the_message_about_the_end_has_it_once_more() -> None:
    conversation = drive(machine(latency="100ms"), homogeneous(1 * MEGA), 2)
    conversation.reply(execute("a", "0-1"))
    sent = 0.2 * MEGA / 4194304 * 2
    assert ends(conversation)["a"] == pytest.approx(0.2 + sent + 0.1, abs=1e-6)


def test_a_killed_job_has_done_what_its_links_allowed() -> None:
    conversation = drive(machine(backbone="100MBps"), homogeneous(100 * MEGA), 2, 2)
    conversation.until(ev.RequestedCall, execute("a", "0-1"), execute("b", "2-3"), ev.CallMeLater(1.0))
    conversation.reply(ev.KillJobs(["w0!a"]))
    (killed,) = conversation.all(ev.JobsKilled)
    assert killed.progress["w0!a"].done == pytest.approx(0.25)
    assert ends(conversation)["b"] == pytest.approx(2.5)


def test_nothing_is_done_while_a_job_waits_for_its_latency() -> None:
    conversation = drive(machine(latency="1s"), homogeneous(100 * MEGA), 2)
    conversation.until(ev.RequestedCall, execute("a", "0-1"), ev.CallMeLater(1.5))
    conversation.reply(ev.KillJobs(["w0!a"]))
    (killed,) = conversation.all(ev.JobsKilled)
    assert killed.progress["w0!a"].done == 0.0


def test_a_walltime_ends_a_job_that_others_slow_down() -> None:
    jobs = [{"id": name, "res": 2, "profile": "p", "walltime": 3} for name in "ab"]
    waiting = workload(*jobs, profiles={"p": homogeneous(100 * MEGA)})
    conversation = Drive(Batsim(Setup(machine(backbone="100MBps"), [waiting])))
    conversation.reply()
    conversation.reply(execute("a", "0-1"), execute("b", "2-3"))
    conversation.finish()
    assert [event.state.value for event in conversation.all(ev.JobCompleted)] == [
        "COMPLETED_WALLTIME_REACHED"
    ] * 2


def test_a_sequence_sends_one_after_another() -> None:
    parts = {"p": {"type": "composed", "seq": ["s", "s"], "repeat": 2}, "s": homogeneous(100 * MEGA)}
    conversation = drive(machine(), parts["p"], 2, s=parts["s"])
    conversation.reply(execute("a", "0-1"))
    assert ends(conversation) == {"a": 4.0}


def test_what_a_single_host_sends_to_itself_takes_no_time() -> None:
    conversation = drive(machine(), {"type": "parallel", "cpu": [0], "com": [1e12]}, 1)
    conversation.reply(execute("a", "0"))
    assert ends(conversation) == {"a": 0.0}


def test_executors_on_one_host_share_its_link() -> None:
    conversation = drive(machine(), homogeneous(100 * MEGA), 3)
    conversation.reply(execute("a", "0-1", [0, 0, 1]))
    assert ends(conversation) == {"a": 4.0}


def test_an_io_job_is_added_to_the_task_of_the_job() -> None:
    conversation = drive(machine(), homogeneous(100 * MEGA), 2, io=homogeneous(100 * MEGA))
    io_job = ev.IoJob("io", HostSet.parse("1-2"))
    conversation.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), io_job=io_job))
    assert ends(conversation) == {"a": 2.0}


@pytest.mark.parametrize(
    ("io_job", "complaint"),
    [
        (ev.IoJob("nothing", HostSet.parse("0-1")), "profile 'nothing' does not exist"),
        (ev.IoJob("nap", HostSet.parse("0-1")), "is of type delay; it must be a parallel one"),
        (ev.IoJob("io", HostSet.parse("0-99")), "hosts 8-99 do not exist"),
        (ev.IoJob("io", HostSet()), "no host was given for the IO job"),
    ],
)
def test_an_io_job_that_cannot_be_is_refused(io_job: ev.IoJob, complaint: str) -> None:
    more = {"io": homogeneous(1.0), "nap": {"type": "delay", "delay": 1}}
    conversation = drive(machine(), homogeneous(1.0), 2, **more)
    with pytest.raises(RuleBroken, match=complaint):
        conversation.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), io_job=io_job))


def test_an_io_job_of_a_sequence_has_a_part_for_each_task() -> None:
    more = {
        "s": homogeneous(100 * MEGA),
        "t": homogeneous(0.0),
        "io": {"type": "composed", "seq": ["s", "t"]},
    }
    conversation = drive(machine(), {"type": "composed", "seq": ["s", "s"]}, 2, **more)
    io_job = ev.IoJob("io", HostSet.parse("0-1"))
    conversation.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), io_job=io_job))
    assert ends(conversation) == {"a": 3.0}
    conversation = drive(machine(), {"type": "composed", "seq": ["s", "s"]}, 2, **more)
    with pytest.raises(RuleBroken, match="the IO job of job w0!a has no part for each task of 'p'"):
        conversation.reply(
            ev.ExecuteJob("w0!a", HostSet.parse("0-1"), io_job=ev.IoJob("s", HostSet.parse("0-1")))
        )


def test_a_job_can_be_killed_while_the_message_about_its_end_is_on_its_way() -> None:
    conversation = drive(machine(latency="1s"), {"type": "delay", "delay": 3}, 1)
    kill = ev.KillJobs(["w0!a"])
    kill.time = 3.5
    conversation.reply(execute("a", "0"), kill, now=5.0)
    conversation.finish()
    (killed,), (completed,) = conversation.all(ev.JobsKilled), conversation.all(ev.JobCompleted)
    assert killed.progress == {}
    assert (completed.time, completed.state.value) == (4.0, "COMPLETED_SUCCESSFULLY")


STORAGE = """<platform version="4.1"><zone id="z" routing="Floyd">
<host id="master_host" speed="1Gf"/><host id="n0" speed="1Gf"/><host id="n1" speed="1Gf"/>
<host id="pfs" speed="1f"><prop id="role" value="storage"/></host>
<host id="ssd" speed="1f"><prop id="role" value="storage"/></host>
<router id="switch"/>
<link id="l0" bandwidth="100MBps"/><link id="l1" bandwidth="100MBps"/>
<link id="lp" bandwidth="100MBps"/><link id="ls" bandwidth="50MBps"/>
<route src="n0" dst="switch"><link_ctn id="l0"/></route>
<route src="n1" dst="switch"><link_ctn id="l1"/></route>
<route src="pfs" dst="switch"><link_ctn id="lp"/></route>
<route src="ssd" dst="switch"><link_ctn id="ls"/></route>
</zone></platform>"""


@pytest.fixture
def storage(tmp_path: Path) -> Platform:
    path = tmp_path / "platform.xml"
    path.write_text(STORAGE)
    return read_platform(path)


@pytest.mark.parametrize(
    ("label", "mapping", "end"), [("pfs", {"pfs": 2}, 3.0), ("pfs", {"pfs": 3}, 6.0), ("ssd", None, 6.0)]
)
def test_all_hosts_read_and_write_at_one_storage(
    storage: Platform, label: str, mapping: dict[str, int] | None, end: float
) -> None:
    profile = {
        "type": "parallel_homogeneous_pfs",
        "bytes_to_read": 1e8,
        "bytes_to_write": 5e7,
        "storage": label,
    }
    conversation = drive(storage, profile, 2)
    conversation.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), storage_mapping=mapping))
    assert ends(conversation) == {"a": end}


def test_staging_goes_from_storage_to_storage(storage: Platform) -> None:
    profile = {"type": "data_staging", "nb_bytes": 1e8, "from": "pfs", "to": "ssd"}
    conversation = drive(storage, profile, 1)
    conversation.reply(execute("a", "0"))
    assert ends(conversation) == {"a": 2.0}


def test_hosts_that_jobs_share_and_links_are_shared_alike() -> None:
    settings = ev.Settings(compute_sharing=True)
    conversation = drive(machine(), homogeneous(100 * MEGA), 2, 2, settings=settings)
    conversation.reply(execute("a", "0-1"), execute("b", "0-1"))
    assert ends(conversation) == {"a": 2.0, "b": 2.0}


def test_a_fat_tree_is_slower_between_switches(tmp_path: Path) -> None:
    platform = machine(4, fat_tree="2;2,2;1,1;1,1")
    near, far = (drive(platform, homogeneous(100 * MEGA), 2, 2) for _ in range(2))
    near.reply(execute("a", "0-1"), execute("b", "2-3"))
    assert ends(near) == {"a": 1.0, "b": 1.0}
    far.reply(execute("a", "0 2"), execute("b", "1 3"))
    assert ends(far) == {"a": 2.0, "b": 2.0}


def test_without_a_network_the_command_says_how_to_get_one(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs.json"
    jobs.write_text(
        '{"nb_res": 2, "jobs": [{"id": "1", "subtime": 0, "res": 2, "profile": "p"}], '
        '"profiles": {"p": {"type": "parallel_homogeneous", "cpu": 0, "com": 100000000}}}'
    )
    command = ["run", "-w", jobs, "--hosts", "2", "-s", "fcfs", "-e", tmp_path / "out"]
    code, _, err = call_here(command)
    assert code != 0
    assert err.count("\n") == 1
    assert "--bandwidth" in err
    assert call_here([*command, "--bandwidth", "100MBps"])[0] == 0
    assert ",1.000000,1.000000," in (tmp_path / "out_jobs.csv").read_text()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--latency", "1ms"], "--latency is for the network that --bandwidth makes"),
        (["--bandwidth", "0"], "--bandwidth: a bandwidth must be more than 0"),
        (["--bandwidth", "1Gbps", "--latency", "nan"], "--latency: 'nan' is not a latency"),
        (["--bandwidth", "1Gbps", "--fat-tree", "1;3;1;1"], "has 3 places, but there are 2 hosts"),
        (
            ["--bandwidth", "1Gbps", "--fat-tree", "1;2;1;1", "--backbone", "1Gbps"],
            "--backbone is for hosts behind",
        ),
    ],
)
def test_networks_of_options_that_cannot_be(tmp_path: Path, options: list[str], complaint: str) -> None:
    command = [
        "run",
        "-w",
        Path("workloads/sample.swf"),
        "--hosts",
        "2",
        "-s",
        "fcfs",
        "-e",
        tmp_path / "out",
    ]
    code, _, err = call_here([*command, *options])
    assert code != 0
    assert complaint in err
    assert err.count("\n") == 1
