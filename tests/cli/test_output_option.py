"""``-o`` means one thing in all commands, and ``--output`` says where something is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from batsched_py.cli.main import batsched_py
from batsched_py.cli.options import OutputOption
from tests.processes import ROOT, call_here

SAMPLE = ROOT / "workloads" / "sample.swf"


def all_commands(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its name."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    with click.Context(command) as context:
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from all_commands(inner, *path, name)


COMMANDS = dict(all_commands(batsched_py))
OPTIONS = [
    (name, option)
    for name, command in COMMANDS.items()
    for option in command.get_params(click.Context(command))
]
OUTPUTS = [(name, option) for name, option in OPTIONS if isinstance(option, OutputOption)]


def test_o_is_an_option_of_the_scheduler_everywhere() -> None:
    having = {name: option for name, option in OPTIONS if "-o" in option.opts}
    assert {"run", "serve", "calibrate", "saturation", "replay", "slurm backtest"} <= set(having)
    for option in having.values():
        assert option.multiple and option.opts == ["-o", "--option"] and option.metavar == "KEY=VALUE"


def test_where_something_is_written_has_one_name_everywhere() -> None:
    outputs = {name: option for name, option in OPTIONS if "--output" in option.opts}
    assert {"describe", "generate", "fit", "sessions", "resample", "compare", "diff"} <= set(outputs)
    assert sum(name.startswith("plot ") for name in outputs) > 20
    assert all(option.opts == ["--output"] for option in outputs.values())


@pytest.mark.parametrize(("name", "option"), OUTPUTS, ids=[name for name, _ in OUTPUTS])
def test_the_old_form_is_read_as_the_new_one(
    name: str, option: OutputOption, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag, warnings in (("--output", 0), ("-o", 1)):
        context = click.Context(COMMANDS[name])
        given, _, _ = COMMANDS[name].make_parser(context).parse_args([flag, "x.svg"])
        value, _ = option.handle_parse_result(context, given, [])
        assert (list(value) if option.multiple else [value]) == [option.type("x.svg")]
        assert capsys.readouterr().err.count("-o FILE is --output FILE now") == warnings


def test_the_old_form_writes_the_same_and_warns_in_one_line(tmp_path: Path) -> None:
    made = ["generate", "lublin", "-n", "20"]
    code, out, err = call_here([*made, "--output", tmp_path / "new.swf"])
    assert (code, err) == (0, "")
    code, again, err = call_here([*made, "-o", tmp_path / "old.swf"])
    assert (code, again) == (0, out.replace("new.swf", "old.swf"))
    assert (tmp_path / "old.swf").read_bytes() == (tmp_path / "new.swf").read_bytes()
    (line,) = err.splitlines()
    assert line.startswith("batsched-py: warning: -o FILE is --output FILE now")


def test_a_required_output_that_is_not_given_is_asked_for_by_its_name() -> None:
    code, _, err = call_here(["generate", "lublin", "-n", "20"])
    assert code == 2
    assert "Missing option '--output'" in err


def test_a_file_for_an_option_of_the_scheduler_is_told_of() -> None:
    code, _, err = call_here(["calibrate", SAMPLE, "-s", "easy", "-o", "c.html"])
    assert code == 2
    assert "'c.html' is not of the form KEY=VALUE; what is written goes by --output c.html" in err
    code, _, err = call_here(["run", "-w", SAMPLE, "-s", "easy", "-o", "depth"])
    assert code == 2
    assert err.rstrip().endswith("'depth' is not of the form KEY=VALUE")
