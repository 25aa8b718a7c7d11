"""What the five papers can do: every command of the document runs, in the order of the page."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, Popen

import pandas as pd
import pytest
from click.testing import CliRunner

from batsched_py.cli.main import COMMANDS
from batsched_py.workload.sources import read_log
from tests.processes import COMMAND, PATIENCE, call_here, environment, serving

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "seeds.md").read_text()

#: What takes longer than a moment: figures, pages, models that learn, campaigns, second processes, users.
LONG = (
    *("plot", "campaign", "fit", "compare", "describe", "realistic", "minh-wolters", "serve", "--by"),
    *("python", "--status"),
)


#: Schedules that shall be the same: of the same sessions, of the same log, and measured, monitored or traced.
EQUAL = [
    {"a60", "filed", "reacting"},
    {"easy", "table", "attributes", "measured", "monitored"},
    {"simulated", "traced"},
]


def rows() -> list[list[str]]:
    """The commands of each row, of all tables."""
    cells = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if re.match(r"\| (?!what \|)", line)]
    return [re.findall(r"`([^`]+)`", row[-1]) for row in cells]


def is_long(commands: list[str]) -> bool:
    return not set(LONG).isdisjoint(commands[0].split())


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder like a checkout, which commands may write to.

    It has no package that could be imported from it: processes that are forked later outlive the folder.
    """
    (tmp_path / "batsched_py" / "schedulers").mkdir(parents=True)
    for name in ("workloads", "platforms", "examples", "batsched_py/schedulers/fcfs.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments_of(command: str) -> list[str]:
    """What follows the name of our program."""
    program, *arguments = shlex.split(command)
    assert program == "batsched-py"
    return arguments


def experiment(command: str) -> tuple[int, str, str]:
    """Run ``python -m examples.experiments.NAME``, in this process."""
    module, *arguments = shlex.split(command.removeprefix("python -m "))
    result = CliRunner().invoke(import_module(module).main, arguments)
    return result.exit_code, result.stdout, result.stderr


@contextmanager
def stepping(arguments: list[str]) -> Iterator[None]:
    """A simulation in another process, which has stopped at its first step and later goes on to its end."""
    command = [*COMMAND, *arguments]
    with Popen(command, env=environment(), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("at 0 ")
            yield
            _, err = process.communicate("continue\n", timeout=PATIENCE)
            assert process.returncode == 0, err
        finally:
            process.kill()


def run(commands: list[str]) -> None:
    """Run the command of a row, or the two that talk to each other."""
    if commands[0].startswith("python"):
        done = experiment(commands[0])
    elif len(commands) == 1:
        done = call_here(arguments_of(commands[0]))
    elif "--status" in commands[0]:
        with stepping(arguments_of(commands[0])):
            done = call_here(arguments_of(commands[1]))
        assert json.loads(done[1])["jobs"]["total"] == 150
    else:
        serve, *options = arguments_of(commands[0])
        assert serve == "serve"
        with serving(*options) as service:
            asking = [*arguments_of(commands[1]), "-s", service.endpoint, "--timeout", str(PATIENCE)]
            done = call_here(asking)
    assert done[0] == 0, (commands, *done[1:])


def test_short_commands_run(checkout: Path) -> None:
    for commands in rows():
        if not is_long(commands):
            run(commands)
    assert (checkout / "traced_schedule.trace").is_file()
    assert_the_effects_are_seen(checkout)


@pytest.mark.slow
def test_all_commands_run(checkout: Path) -> None:
    for commands in rows():
        run(commands)
    for name in re.findall(r"--(?:output|plot) (\S+\.\w+)`", TEXT):
        assert (checkout / name).stat().st_size > 0, name
    assert_the_gain_is_lost_without_a_night(checkout / "night.csv")
    slowdowns = pd.read_csv(checkout / "loads" / "metrics.csv").groupby("log")["mean_bounded_slowdown"]
    assert slowdowns.min()["recorded"] > 10 * slowdowns.max()["clean"], "the flurry is seen at every load"


def assert_the_effects_are_seen(folder: Path) -> None:
    """Commands that shall change something did."""

    def states(name: str) -> list[str]:
        return pd.read_csv(folder / f"{name}_jobs.csv")["final_state"].tolist()

    def jobs(name: str) -> int:
        return len(read_log(folder / f"{name}.swf"))

    assert len(states("patience")) < jobs("weeks") - 20, "who lost patience submitted less"
    killed = states("killed").count("COMPLETED_WALLTIME_REACHED")
    assert killed > 10
    assert len(states("again")) > jobs("log") + 10, "killed jobs came again"
    assert jobs("clean") == jobs("few") < jobs("flurry"), "nothing but the flurry is removed"
    assert 0 < jobs("fair") < jobs("few")
    found: dict[bytes, set[str]] = {}
    for path in sorted(folder.glob("*_jobs.csv")):
        found.setdefault(path.read_bytes(), set()).add(path.name.removesuffix("_jobs.csv"))
    same = [names for names in found.values() if len(names) > 1]
    assert same == EQUAL


def assert_the_gain_is_lost_without_a_night(table: Path) -> None:
    """The finding of the campaign ``night``: jobs and utilization grow with the cycle, hardly without."""
    found = pd.read_csv(table).set_index(["scheduler", "users", "metric"])
    means = found["mean"]
    for metric in ("nb_jobs", "utilization"):
        assert found.loc[("user-aware", "cycle", metric), "difference_low"] > 0
        gain, without = (
            means["user-aware", users, metric] / means["easy", users, metric] - 1
            for users in ("cycle", "no-cycle")
        )
        assert without < gain / 3


def test_every_row_has_commands_of_ours() -> None:
    found = rows()
    assert len(found) == len(re.findall(r"^\| (?!what \|)", TEXT, re.MULTILINE)) > 110
    for program, command, *rest in (each.split() for row in found for each in row):
        if program == "python":
            assert command == "-m"
            assert rest[0].startswith("examples.experiments.")
        else:
            assert program == "batsched-py"
            assert command in COMMANDS
    assert all(found)
    assert len(re.findall("^## ", TEXT, re.MULTILINE)) == 7
