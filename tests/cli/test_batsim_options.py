"""Options of Batsim for what the built-in Batsim does not have are answered by name."""

from __future__ import annotations

import pytest

from tests.processes import call_here


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["-W", "a.dax"], "--workflow: workflows are not simulated"),
        (["--WS", "a.dax@10"], "--workflow-start: workflows are not simulated"),
        (["--no-sched"], "--no-sched: somebody has to decide; batsched-py run -s fcfs"),
        (["--enable-redis"], "--enable-redis: there is no Redis"),
        (["--redis-hostname", "localhost"], "--redis-hostname: there is no Redis"),
        (["--redis-port", "6379"], "--redis-port: there is no Redis"),
        (["--redis-prefix", "x"], "--redis-prefix: there is no Redis"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(given: list[str], reason: str) -> None:
    code, out, told = call_here(["batsim", *given, "--dump-execution-context"])
    assert (code, out) == (1, "")
    assert reason in told


@pytest.mark.parametrize(
    "given",
    [
        ["--workflow-jobs-limit", "3"],
        ["--ignore-beyond-last-workflow"],
        ["--sg-cfg", "network/model:CM02"],
        ["--sg-log", "root.thresh:info"],
    ],
)
def test_what_means_nothing_here_is_accepted_with_one_line(given: list[str]) -> None:
    code, out, told = call_here(["batsim", *given, "--dump-execution-context"])
    assert (code, told.count("\n")) == (0, 1)
    assert told.startswith(f"{given[0]}: has no effect: ")
    assert '"external_scheduler":true' in out


def test_there_is_no_version_of_simgrid() -> None:
    assert call_here(["batsim", "--simgrid-version"]) == (
        0,
        "none: the built-in Batsim does without SimGrid\n",
        "",
    )
