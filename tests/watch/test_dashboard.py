"""What a live view shows of a simulation."""

from __future__ import annotations

import io

from rich.console import Console

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.events import HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.watch.dashboard import Dashboard
from batsched_py.watch.scenes import scenes
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
