"""What a live view shows of a simulation."""

from __future__ import annotations

import io

from rich.console import Console

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve, Known
from batsched_py.protocol.events import HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.watch.live import Dashboard
from batsched_py.watch.scenes import scenes
from batsched_py.watch.stepper import Stepper
from batsched_py.workload.model import Workload
from tests.scheduling import policy

JOBS = [
    JobSpec("a", 0, 3, 10, 10),
    JobSpec("b", 1, 4, 5, 5),
    JobSpec("c", 2, 1, 8, 8),
    JobSpec("d", 3, 1, 8, 8),
]


def shown(at: float, hosts: int = 4, width: int = 120) -> list[str]:
    """The lines of the picture after what was decided at a time; host 3 is away from 9 on."""
    outage = HostsUnavailable(HostSet.of([hosts - 1]), time=9.0)
    batsim = Batsim(Setup(Platform.homogeneous(hosts), [workload_of(JOBS)], events=[[outage]]))
    dashboard = Dashboard("easy", len(JOBS))
    for scene in scenes(batsim, DecisionProcess(policy("easy"))):
        dashboard.note(scene)
        if scene.now >= at:
            break
    return picture(dashboard, width)


def picture(dashboard: Dashboard, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=30, color_system=None)
    console.print(dashboard.picture("running", 2.0, 61.0, width, 30))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_it_tells_time_progress_and_how_long_it_took() -> None:
    assert "easy   0 d 00:00:03   running   0 of 4 jobs over (0.0%)   for 1.02 min   2 s/s" in shown(3)[1]


def test_it_shows_who_waits_and_who_runs() -> None:
    text = "\n".join(shown(3))
    assert "2 waiting" in text
    assert "2 running" in text
    assert "w0!b" in text
    assert "utilization 100%" in text
    assert "queue 2, at most 2" in text


def test_a_strip_shows_every_host() -> None:
    assert "│ ████ " in shown(3)[4]
    assert "4 busy" in shown(3)[5]
    assert "│ ███· " in shown(1)[4]
    assert "3 busy   1 free" in shown(1)[5]


def test_hosts_that_are_away_are_shown_when_their_jobs_have_left() -> None:
    strip, words = shown(10)[4:6]
    assert "│ █··x " in strip
    assert "1 away" in words


def test_many_hosts_share_a_character() -> None:
    strip, words = shown(0, hosts=1000)[4:6]
    assert "(9 hosts to a character)" in words
    assert len(strip.strip("│ ")) == 112


def test_what_happened_last_comes_first() -> None:
    text = "\n".join(shown(2))
    assert (
        text.index("start w0!c on 3")
        < text.index("w0!c submitted (1 host, 8 s)")
        < text.index("w0!b submitted")
    )


def known_outside(at: float, step: bool = False) -> list[str]:
    """Six hosts, of which two are closed and one is reserved; a job is held, others have several sizes."""
    closures = (
        Closure(5.0, 50.0, HostSet.of([4, 5])),
        Closure(5.0, 50.0, HostSet.of([3]), frozenset(["anna"])),
    )
    known = Known(price=Curve([0.0], [0.25]), power_cap=Curve([0.0], [9000.0]), closures=closures)
    jobs = [
        Job("w0!a", 0.0, 2, 60.0, "p", {"malleable": {"min": 1, "max": 3}}),
        Job("w0!b", 6.0, 2, 60.0, "p", {"sizes": {"2": 10, "4": 6}}),
        Job("w0!c", 6.0, 1, 60.0, "p", {"after": "afterok:a"}),
    ]
    batsim = Batsim(Setup(Platform.homogeneous(6), [Workload("w0", jobs, {"p": Delay(30.0)})]))
    dashboard = Dashboard("easy", len(jobs))
    process = DecisionProcess(policy("easy"), outlook=lambda hosts: known)
    said: list[str] = []
    commands = iter(("queue", "hosts", "why b", "why c", "n"))
    for scene in scenes(batsim, process):
        dashboard.note(scene)
        if scene.now >= at:
            Stepper(lambda: next(commands), said.append)(scene)
            break
    return said if step else picture(dashboard, 120)


def test_hosts_that_are_closed_or_reserved_are_shown() -> None:
    strip, words, frame = known_outside(6)[4:7]
    assert "│ ██·r## " in strip
    assert "2 busy   1 free   2 closed   1 reserved" in words
    assert "price 0.25   at most 9,000 W" in frame


def test_jobs_that_are_held_or_have_several_sizes_are_shown() -> None:
    text = "\n".join(known_outside(6))
    assert "1 waiting, 1 held" in text
    assert "2 (1-3)" in text
    assert "2 (2|4)" in text


def test_the_stepper_tells_of_closed_hosts_and_held_jobs() -> None:
    text = "\n".join(known_outside(6, step=True))
    assert "      closed         2  4-5" in text
    assert "      reserved       1  3" in text
    assert "w0!b needs 2 hosts, and waits for nodes that stay open to it; expected by 50;" in text
    assert text.count("w0!c is held: afterok:a: w0!a is not over") == 1
    assert "1 waiting, 1 held, 1 running, 1 of 6 hosts free" in text
    assert "outside    price 0.25   at most 9,000 W" in text
