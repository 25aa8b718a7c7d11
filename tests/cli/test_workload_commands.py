"""The commands about workloads as their users see them: convert, describe, change, generate, fit, compare."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import batsched_py as bp
from batsched_py.cli.main import batsched_py
from batsched_py.workload.description import describe
from batsched_py.workload.sources import read_log

COMMANDS = ["change", "changes", "compare", "convert", "describe", "fit", "generate", "models"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, [str(argument) for argument in arguments])


def output(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def sample(root: Path) -> Path:
    return root / "workloads" / "sample.swf"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example(name: str) -> None:
    assert f"batsched-py {name}" in output(name, "--help").partition("Examples:")[2]


# --- convert -------------------------------------------------------------------------------------


def test_convert_counts_what_is_lost(sample: Path, tmp_path: Path) -> None:
    lines = output("convert", sample, tmp_path / "sample.json").splitlines()
    assert lines[0] == f"{tmp_path / 'sample.json'}: 3,000 jobs"
    assert "  lost: 3,000 x wait" in lines
    assert json.loads((tmp_path / "sample.json").read_text())["nb_res"] == 64


def test_convert_anonymises(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submit,run_time,requested_processors,user\n0,1,1,alice\n1,1,1,bob\n")
    output("convert", tmp_path / "jobs.csv", tmp_path / "named.swf")
    output("convert", tmp_path / "jobs.csv", tmp_path / "jobs.swf", "--anonymise", "3")
    assert "alice" in (tmp_path / "named.swf").read_text()
    assert "alice" not in (tmp_path / "jobs.swf").read_text()


def test_convert_goes_to_batsim_5_and_back(root: Path, tmp_path: Path) -> None:
    four = root / "tests" / "data" / "golden" / "kinds120_fcfs" / "kinds120.json"
    five, again, same = (tmp_path / name for name in ("w.batsim5.json", "w.json", "five"))
    assert output("convert", four, five) == f"{five}: 120 jobs\n"
    output("convert", five, again)
    output("convert", again, same, "--to", "batsim5")
    assert normal(json.loads(again.read_text())) == normal(json.loads(four.read_text()))
    assert same.read_bytes() == five.read_bytes()
    types = {profile["type"] for profile in json.loads(five.read_text())["profiles"].values()}
    assert types and all(name.endswith("Profile") for name in types)


def normal(workload: dict[str, Any]) -> dict[str, Any]:
    """A walltime of -1 is none."""
    for job in workload["jobs"]:
        if job.get("walltime") == -1:
            del job["walltime"]
    return workload


def test_convert_keeps_what_no_job_needs_and_nobody_knows(tmp_path: Path) -> None:
    job = {"id": "a!7", "subtime": 1.0, "res": 2, "profile": "p", "extra_data": '{"user":"ann"}'}
    profiles = {
        "p": {"type": "DelayProfile", "delay": 3, "extra_data": '{"command":"x"}'},
        "unused": {"type": "SequentialCompositionProfile", "repeat": 2, "seq": ["p"]},
    }
    content = {"description": "mine", "nb_res": 4, "jobs": [job], "profiles": profiles, "date": [1, 2]}
    five, four, again = (tmp_path / name for name in ("five.json", "four.json", "again.batsim5.json"))
    five.write_text(json.dumps(content))
    output("convert", five, four)
    old = json.loads(four.read_text())
    assert (old["jobs"][0]["user"], old["profiles"]["p"]["command"]) == ("ann", "x")
    assert old["profiles"]["unused"] == {"type": "composed", "repeat": 2, "seq": ["p"]}
    output("convert", four, again)
    assert json.loads(again.read_text()) == content


def test_a_log_becomes_a_workload_of_batsim_5_and_back(sample: Path, tmp_path: Path) -> None:
    output("convert", sample, tmp_path / "w.batsim5.json")
    output("convert", sample, tmp_path / "w.json")
    for name in ("w.batsim5.json", "w.json"):
        output("convert", tmp_path / name, tmp_path / f"{name}.swf")
    assert (tmp_path / "w.batsim5.json.swf").read_bytes() == (tmp_path / "w.json.swf").read_bytes()


@pytest.mark.parametrize(
    ("profile", "target", "complaint"),
    [
        ({"type": "send", "msg": {}}, "x.batsim5.json", "a profile of the type send cannot be said"),
        ({"type": "recv"}, "x.batsim5.json", "a profile of the type recv cannot be said"),
        ({"type": "wish"}, "x.batsim5.json", "profile 'p' has the type 'wish'"),
        (
            {
                "type": "ParallelTaskOnStorageHomogeneousProfile",
                "bytes_to_read": 1,
                "generation_strategy": "DefinedAmountsSpreadUniformly",
            },
            "x.json",
            "profile 'p' needs DefinedAmountsUsedForEachValue as `generation_strategy`",
        ),
    ],
)
def test_convert_names_what_cannot_be_said(
    profile: dict[str, Any], target: str, complaint: str, tmp_path: Path
) -> None:
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p"}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 1, "jobs": [job], "profiles": {"p": profile}}))
    assert complaint in error("convert", tmp_path / "w.json", tmp_path / target)
    assert not (tmp_path / target).exists()


def test_convert_is_told_kinds_and_options(tmp_path: Path) -> None:
    (tmp_path / "dump").write_text("t;x\n")
    assert "what kind of log is it?" in error("convert", tmp_path / "dump", tmp_path / "x.swf")
    (tmp_path / "dump").write_text("t,run_time,requested_processors\n2024-01-01,5,1\n")
    output(
        "convert", tmp_path / "dump", tmp_path / "out", "--from", "csv", "--to", "swf",
        "-i", "columns=submit:t", "-i", "zone=Europe/Paris",
    )  # fmt: skip
    assert "; UnixStartTime: 1704063600" in (tmp_path / "out").read_text()


# --- describe ------------------------------------------------------------------------------------


def test_describe_prints_what_matters(sample: Path) -> None:
    text = output("describe", sample)
    for words in (
        "utilization",
        "Hurst parameter",
        "spatial burstiness",
        "share of jobs, contiguous",
        "per key",
    ):
        assert words in text


def test_describe_says_what_a_log_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("submit,run_time,requested_processors\n0,10,1\n9000,20,2\n")
    output("describe", tmp_path / "log.csv", "--output", tmp_path / "log.html")
    text = output("describe", tmp_path / "log.csv")
    assert re.search(r"submitted in working hours +no UnixStartTime", text)
    assert "The 2 jobs that ran (of none the log says that it completed)" in text
    assert "working days" not in (tmp_path / "log.html").read_text()


def test_without_a_header_the_machine_is_unknown_and_may_be_given(tmp_path: Path) -> None:
    jobs = "".join(f"{10 * n},100,8\n" for n in range(11))
    (tmp_path / "log.csv").write_text("submit,run_time,requested_processors\n" + jobs)
    load = json.loads(output("describe", tmp_path / "log.csv", "--json"))["load"]
    assert (load["machine"], load["load"], load["utilization"]) == (None, None, None)
    assert {week[figure] for week in load["weeks"] for figure in ("load", "utilization")} == {None}
    text = output("describe", tmp_path / "log.csv")
    assert re.search(r"processors +unknown\n.*\n +load +unknown\n +utilization +unknown\n", text)
    text = output("describe", tmp_path / "log.csv", "--hosts", 88)
    assert re.search(r"processors +88\n.*\n +load +100\.0%\n +utilization +50\.0%\n", text)


def test_what_a_log_does_not_tell_no_copy_of_it_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [f"{60 * n},{30 + 7 * (n % 13)},{1 + n % 4},{1 + n % 3}\n" for n in range(60)]
    (tmp_path / "log.csv").write_text("submit,run_time,requested_processors,user\n" + "".join(lines))
    row = next(
        each for each in output("compare", tmp_path / "log.csv", "naive").splitlines() if " load " in each
    )
    assert "unknown" in row
    assert "✗" not in row
    assert "does not say how large its machine is: the model takes the 7 processors" in caplog.text


def test_without_users_there_are_none(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("submit,run_time,requested_processors\n0,10,1\n9000,20,2\n9001,5,1\n")
    known = json.loads(output("describe", tmp_path / "log.csv", "--json"))
    assert (known["users"], known["load"]["users"], known["load"]["weeks"][0]["users"]) == (None, None, None)
    assert (known["locality"]["user"], known["locality"]["repetition"]) == (None, None)
    assert list(known["flurries"]["weekly"]) == ["others"]
    output("describe", tmp_path / "log.csv", "--output", tmp_path / "log.html")
    assert "no job says whose it is" in (tmp_path / "log.html").read_text()
    text = output("describe", tmp_path / "log.csv")
    for what in ("users", "users who submit half of the jobs", r"sessions \(.*\)", "mean jobs of a session"):
        assert re.search(rf"^  {what} +unknown$", text, re.MULTILINE), what


def test_describe_prints_json(sample: Path) -> None:
    known = json.loads(output("describe", sample, "--json"))
    assert known["load"]["jobs"] == 3000
    assert set(known["burstiness"]["temporal"]) >= {"15 min", "30 min"}


def test_describe_writes_a_page(sample: Path, tmp_path: Path) -> None:
    output("describe", sample, "--output", tmp_path / "pages" / "sample.html")
    assert (tmp_path / "pages" / "sample.html").read_text().startswith("<!doctype html>")


def test_describe_of_nothing(tmp_path: Path) -> None:
    assert "there is no such file" in error("describe", tmp_path / "nowhere.swf")


# --- change --------------------------------------------------------------------------------------


def test_change_does_steps_in_order_and_tells_them(sample: Path, tmp_path: Path) -> None:
    text = output(
        "change", sample, tmp_path / "out.swf", "first", "jobs=100", "load", "factor=2", "by=run-times"
    )
    assert text.splitlines() == [
        "  first jobs=100: 100 of 3000 jobs kept",
        "  load factor=2.0 by=run-times: jobs that followed each other may overlap",
        f"{tmp_path / 'out.swf'}: 100 jobs",
    ]
    assert len(read_log(tmp_path / "out.swf")) == 100


def test_change_writes_parts(sample: Path, tmp_path: Path) -> None:
    text = output("change", sample, tmp_path / "part.swf.gz", "--parts", "28d")
    assert text.splitlines()[1:] == [
        f"{tmp_path / f'part-{number}.swf.gz'}: {len(read_log(tmp_path / f'part-{number}.swf.gz')):,} jobs"
        for number in (1, 2)
    ]


def test_changes_are_listed_and_described() -> None:
    assert output("changes").splitlines()[-1].startswith("users ")
    assert "by=arrivals|run-times|sizes" in output("changes", "load")


# --- generate, fit, compare ----------------------------------------------------------------------


def test_generate_writes_a_log_that_can_be_simulated(tmp_path: Path) -> None:
    text = output(
        "generate", "lublin", "-n", "200", "--seed", "1", "--output", tmp_path / "l.swf", "-p", "types=batch"
    )
    assert text.startswith(f"{tmp_path / 'l.swf'}: 200 jobs in ")
    output("run", "-w", tmp_path / "l.swf", "-s", "easy", "-e", tmp_path / "easy")


def test_fit_then_generate_is_generate_like(sample: Path, tmp_path: Path) -> None:
    output("fit", "naive", "--like", sample, "--output", tmp_path / "naive.json")
    output(
        "generate", "naive", "--model", tmp_path / "naive.json", "-n", "50", "--output", tmp_path / "a.swf"
    )
    output("generate", "naive", "--like", sample, "-n", "50", "--output", tmp_path / "b.swf")
    assert (tmp_path / "a.swf").read_text() == (tmp_path / "b.swf").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "naive", "-n", "5", "--output", "x.swf"], "give --like LOG or --model FILE"),
        (["generate", "lublin", "--like", "a", "-n", "5", "--output", "x.swf"], "learns from no log"),
        (
            ["generate", "naive", "--like", "a", "--model", "b", "-n", "5", "--output", "x.swf"],
            "give one of them",
        ),
        (["generate", "lublin", "-n", "5", "--output", "x.xyz"], "what kind of log is it?"),
        (["generate", "magic", "-n", "5", "--output", "x.swf"], "there is no model 'magic'"),
        (["fit", "lublin", "--like", "a.swf", "--output", "x.json"], "has its parameters already"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str) -> None:
    assert message in error(*arguments)


def test_a_fitted_model_of_another_name_is_refused(sample: Path, tmp_path: Path) -> None:
    output("fit", "naive", "--like", sample, "--output", tmp_path / "naive.json")
    message = error(
        "generate", "slots", "--model", tmp_path / "naive.json", "-n", "5", "--output", tmp_path / "x.swf"
    )
    assert "this is a model naive, not slots" in message


def test_compare_prints_a_column_for_each_model(sample: Path) -> None:
    text = output("compare", sample, "naive", "slots", "--seeds", "1")
    (head,) = [line for line in text.splitlines() if "naive" in line]
    assert head.split() == ["log", "naive", "slots", "tolerance"]
    (row,) = [line for line in text.splitlines() if "spatial entropy" in line]
    assert "✗" in row


def test_generate_prints_the_load_beside_that_of_the_log(sample: Path, tmp_path: Path) -> None:
    text = output("generate", "slots", "--like", sample, "-n", "500", "--output", tmp_path / "a.swf")
    load = describe(read_log(sample)).load.load
    made = describe(read_log(tmp_path / "a.swf")).load.load
    assert load is not None and made is not None
    assert text.endswith(f", load {made:.1%}; the log it is like has a load of {load:.1%}\n")


@pytest.mark.parametrize(
    ("model", "work", "warns"),
    [
        ("naive", "published", True),
        ("naive", "log", False),
        ("slots", "published", False),
        ("slots", "log", False),
        ("minh-wolters", "log", False),
    ],
)
def test_generate_warns_of_another_load(
    sample: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, model: str, work: str, warns: bool
) -> None:
    """Models have the load of their log, unless they are to be as published."""
    words = ["--like", sample, "-n", "3000", "-p", f"work={work}", "--output", tmp_path / "a.swf"]
    output("generate", model, *words)
    made, load = (describe(read_log(file)).load.load for file in (tmp_path / "a.swf", sample))
    assert made is not None and load is not None
    assert (abs(made - load) > 0.05) == warns
    said = f"the generated log has a load of {made:.1%} and the log it is like one of {load:.1%}"
    assert (said in caplog.text) == warns


def test_compare_ranks_policies_on_log_and_model(sample: Path, tmp_path: Path) -> None:
    output("change", sample, tmp_path / "short.swf", "first", "jobs=150")
    text = output("compare", tmp_path / "short.swf", "naive", "--seeds", "1", "--rankings")
    waits, slowdowns = re.findall(r"Kendall's tau +(\S+) \(\S+\)", text)
    assert -1 <= float(waits) <= 1 and -1 <= float(slowdowns) <= 1
    (row,) = re.findall(
        r"^ *conservative +(.*\S)", text.split("mean wait, in hours")[1].split("slowdown")[0], re.M
    )
    hours = bp.simulate(tmp_path / "short.swf", "conservative").overview.mean_waiting_time / 3600
    assert row.startswith(f"{hours:.2f} (")


def test_models_are_listed_and_described() -> None:
    assert [line.split()[0] for line in output("models").splitlines()] == [
        "batsim-evaluation", "cluster", "lublin", "minh-wolters", "naive", "realistic", "slots",
    ]  # fmt: skip
    assert "-p speed=float" in output("models", "slots")
