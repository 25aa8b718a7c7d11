"""Options that only ``run`` has: ``serve`` tells of each where it belongs."""

from __future__ import annotations

import click
import pytest

from batsched_py.cli.batsim import batsim_command
from batsched_py.cli.run import run_command
from batsched_py.cli.serve import ONLY_OF_RUN, serve_command
from tests.processes import call_here


def flags(command: click.Command) -> set[str]:
    return {
        flag
        for each in command.get_params(click.Context(command))
        for flag in (*each.opts, *each.secondary_opts)
    }


def test_each_option_of_run_is_one_of_serve_or_has_a_reason() -> None:
    assert flags(run_command) - flags(serve_command) == set(ONLY_OF_RUN)


def test_what_belongs_to_the_simulator_is_an_option_of_it() -> None:
    theirs = {flag for flag, reason in ONLY_OF_RUN.items() if reason.endswith("give it to batsim")}
    assert len(theirs) > 40 and theirs <= flags(batsim_command)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--events", "x.txt"], "--events belongs to the simulator: give it to batsim"),
        (["-p", "x.xml"], "-p belongs to the simulator: give it to batsim"),
        (["--json"], "--json prints results, which the simulator has: see `batsched-py metrics`"),
        (["--step=10"], "--step needs both sides in one process: give it to `run`"),
        (["--note", "x.csv"], "No such option"),
    ],
)
def test_an_option_of_run_is_refused_with_its_reason(words: list[str], told: str) -> None:
    code, out, err = call_here(["serve", "-s", "easy", *words])
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"Error: {told}")


@pytest.mark.parametrize("rule", [[], ["--on-failure", "kill"], ["--on-failure", "resubmit"]])
@pytest.mark.parametrize("command", [["run"], ["serve"]])
def test_checkpoints_are_refused_where_nothing_makes_them(command: list[str], rule: list[str], root) -> None:
    log = root / "workloads" / "sample.swf"
    for flag in ("--checkpoint-interval", "--checkpoint-overhead"):
        arguments = [*command, "-s", "easy", "-w", log, *(rule or ["--users", "rigid"]), flag, "600"]
        code, _, err = call_here(arguments)
        assert (code, err) == (1, f"batsched-py: error: {flag} is for --on-failure checkpoint; give it too\n")
