"""What a change of the configuration would do."""

from __future__ import annotations

import json
import shutil
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from batsched_py.errors import InputError
from batsched_py.slurm.changes import changed
from batsched_py.slurm.policy.settings import Association, Configuration, Partition
from batsched_py.slurm.what_if import outcome
from tests.processes import call_here

BASE = Configuration(
    partitions=(
        Partition(name="batch", nodes="n[1-2]", default=True),
        Partition(name="short", nodes="n[1-2]", max_time=900, priority_job_factor=10),
    ),
    associations=(Association(account="physics"), Association(account="physics", user="ada", shares=3)),
)

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=30
PriorityType=priority/multifactor
PriorityWeightPartition=1000
NodeName=n[1-2] CPUs=4
PartitionName=batch Nodes=ALL Default=YES PriorityJobFactor=1
PartitionName=short Nodes=ALL MaxTime=15 PriorityJobFactor=10
"""


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    rows = [
        f"{10 * place},{200 + 37 * place % 400},-n {4 + place % 5} -t 10 -p {part} --uid={user}"
        for place, (part, user) in enumerate([("batch", "ada"), ("short", "bob"), ("batch", "cy")] * 6)
    ]
    (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *rows]) + "\n")
    code, _, err = call_here(["slurm", "import", tmp_path, tmp_path / "twin"])
    assert code == 0, err
    return tmp_path / "twin"


def test_lines_of_slurm_conf_change_what_they_name_and_nothing_else() -> None:
    made = changed(BASE, "SchedulerParameters=bf_interval=60,bf_continue")
    assert (made.scheduling.bf_interval, made.scheduling.bf_continue) == (60, True)
    assert (made.partitions, made.associations) == (BASE.partitions, BASE.associations)
    assert changed(made, "SchedulerParameters=bf_window=60").scheduling.bf_interval == 60
    made = changed(BASE, "PartitionName=short MaxTime=INFINITE")
    assert made.partitions[1] == Partition(name="short", nodes="n[1-2]", priority_job_factor=10)
    assert made.partitions[1].max_time == inf
    assert len(changed(BASE, "PartitionName=new Nodes=n1").partitions) == 3
    assert changed(BASE, "PriorityWeightAge=5000").priority.weight_age == 5000


def test_fields_of_slurm_toml() -> None:
    assert changed(BASE, "scheduling.bf_interval=60").scheduling.bf_interval == 60
    assert changed(BASE, "priority.type=multifactor").priority.type == "multifactor"
    assert changed(BASE, "partitions.short.max_time = 60").partitions[1].max_time == 60
    assert changed(BASE, "associations.physics/ada.shares=10").associations[1].shares == 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("scheduling.bf_frobnicate=1", "bf_frobnicate"),
        ("scheduling.bf_interval=soon", "Expected `float`"),
        ("nothing.here=1", "no table"),
        ("partitions.long.max_time=1", "there are batch, short"),
        ("Frobnicate=1", "this would change nothing here"),
        ("SlurmctldPort=1", "this would change nothing here"),
        ("PriorityWeightAge=old", "not a whole number"),
        ("NodeName=n3 CPUs=4", "platform.toml"),
        ("what", "not of the form Name=Value"),
        ("PriorityWeightAge=0", "it is so already"),
        ("PartitionName=short", "it is so already"),
        ("scheduling.bf_interval=30", "it is so already"),
        ("partitions.short.max_time=-5", "Expected `float` > 0.0"),
        ("PartitionName=short TRESBillingWeights=cpu=NaN", "not a weight"),
        ("", "not of the form Name=Value"),
    ],
)
def test_changes_that_make_no_sense_are_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match="--set") as caught:
        changed(BASE, text)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_effects_have_intervals_over_repetitions() -> None:
    def table(waits: list[float]) -> pd.DataFrame:
        jobs = pd.DataFrame({"submit": 0.0, "eligible": 0.0, "start": waits, "size": 1})
        jobs = jobs.assign(end=jobs["start"] + 10, partition="p", account="", qos="", user=["ada", "bob"])
        return jobs.set_index(pd.Index(["1", "2"]))

    after = [table([80, 60]), table([70, 40]), table([135, 50])]
    pairs = [(table([100, 50]), waits) for waits in after]
    found = outcome(pairs, ["x"], "patience", [0, 1, 2], (4, 4))
    assert found.groups["account"] == {}
    assert (found.all.recorded, found.all.error) == (None, 0.0)
    ada, bob = found.groups["user"]["ada"], found.groups["user"]["bob"]
    assert list(found.groups["user"]) == ["ada", "bob"]
    assert (ada.before, ada.after, ada.difference.mean) == (100, 95, -5)
    assert ada.difference.half_width == pytest.approx(4.3027 * 35 / 3**0.5, rel=1e-4)
    assert (ada.verdict, bob.difference.mean, bob.verdict) == ("unclear", 0, "unclear")
    two = outcome(pairs[:2], ["x"], "patience", [0, 1], (4, 4)).groups["user"]["ada"]
    assert (two.difference.mean, two.difference.half_width, two.verdict) == (-25, None, "unclear")
    assert outcome(pairs[:1], ["x"], "rigid", [0], (4, 4)).groups["user"]["ada"].verdict == "gains"


def test_the_utilization_is_of_the_time_from_the_first_submission_to_the_last_end() -> None:
    """From 100 s to 180 s: 2 cores for 40 s and 1 core for 60 s are 140 of 320 core seconds, of 4 cores."""
    jobs = pd.DataFrame(
        {"submit": [100.0, 110.0], "start": [100.0, 120.0], "end": [140.0, 180.0], "size": [2, 1]},
        index=["1", "2"],
    )
    jobs = jobs.assign(eligible=jobs["submit"], partition="p", account="", qos="", user="")
    later = jobs.assign(start=jobs["start"] + 20, end=jobs["end"] + 20)
    found = outcome([(jobs, later)], ["x"], "rigid", [0], (4, 4))
    assert found.utilization == pytest.approx((140 / 320, 140 / 400))


def test_the_command_tells_who_gains_and_who_loses(twin: Path) -> None:
    arguments = ["slurm", "what-if", twin, "--set", "PartitionName=short PriorityJobFactor=1"]
    code, out, err = call_here([*arguments, "--users", "rigid", "--json", "-e", twin / "both"])
    assert (code, err) == (0, "")
    partitions = json.loads(out)["groups"]["partition"]
    assert partitions["short"]["difference"]["mean"] > 0 > partitions["batch"]["difference"]["mean"]
    before, after = ((twin / f"both_{side}_jobs.csv").read_text() for side in ("before", "after"))
    assert before != after and len(before.splitlines()) == len(after.splitlines()) == 19
    code, out, err = call_here([*arguments, "--seeds", "3", "--output", twin / "page.html"])
    assert (code, err) == (0, "")
    assert "users: distribution, 3 repetitions" in out and "±" in out and "loses" in out
    assert "What if: PartitionName=short" in (twin / "page.html").read_text()


def test_jobs_that_run_no_more_are_told_and_do_not_count(twin: Path) -> None:
    change = ["--set", "PartitionName=batch State=DOWN", "--users", "rigid"]
    code, out, err = call_here(["slurm", "what-if", twin, *change, "--output", twin / "page.html"])
    assert (code, err) == (0, "")
    told = "12 jobs run before the change only (1, 10, 12,"
    assert told in out and told in (twin / "page.html").read_text()
    assert "6 (-12, +0)" in out
    (line,) = [line for line in out.splitlines() if line.startswith("batch ")]
    assert line.split() == ["batch", "0", "(-12,", "+0)", "?", "?", "?", "?", "loses"]


def test_the_configuration_of_another_scenario_tells_the_nodes_of_its_partitions(twin: Path) -> None:
    """A run needs the same in the platform, and says so."""
    other = twin.parent / "other"
    shutil.copytree(twin, other)
    nodes = '[[nodes]]\nnames = "n{}"\ncores = 4\npartitions = {}\n'
    platform = nodes.format(1, '["batch", "short"]') + nodes.format(2, '["batch"]')
    (other / "platform.toml").write_text(platform)
    arguments = ["slurm", "what-if", twin, "--other", other, "--users", "rigid", "--seeds", "1", "--json"]
    code, out, err = call_here(arguments)
    assert (code, err, json.loads(out)["all"]["difference"]["mean"]) == (0, "", 0)
    run = ["run", "-w", other / "workload.json", "-p", other / "platform.toml", "-s", "slurm"]
    code, _, err = call_here([*run, "-o", f"configuration_file={other / 'slurm.toml'}"])
    assert code == 1 and len(err.splitlines()) == 1
    assert "partition 'short' has node 'n2' by the configuration and not by the platform" in err


def test_a_reservation_more_nodes_and_a_qos_of_ones_own(twin: Path) -> None:
    upkeep = "ReservationName=upkeep StartTime=now+1minute Duration=60 Nodes=n[1-2] Flags=MAINT,IGNORE_JOBS"

    def effect(*changes: str) -> dict[str, Any]:
        sets = [word for change in changes for word in ("--set", change)]
        arguments = ["slurm", "what-if", twin, *sets, "--users", "rigid", "--seeds", "1", "--json"]
        code, out, err = call_here(arguments)
        assert (code, err) == (0, "")
        found: dict[str, Any] = json.loads(out)
        return found

    found = effect(upkeep)
    assert found["all"]["difference"]["mean"] > 1800, "most jobs wait until it is over"
    found = effect("+6 nodes like n1")
    assert found["all"]["after"] < found["all"]["before"] / 2, "there is room for four times as much"
    assert found["utilization"][1] <= 1
    enforce = "AccountingStorageEnforce=limits,qos"
    found = effect(enforce, "qos.one.grp_tres={cpu = 5}", "partitions.short.qos=one")
    assert found["groups"]["partition"]["short"]["no_more"] == found["all"]["no_more"] > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ReservationName=upkeep StartTime=soon Duration=60 Nodes=n1", "is not a moment"),
        ("ReservationName=upkeep StartTime=now Duration=60 Nodes=n9", "reservation 'upkeep' has node 'n9'"),
        ("ReservationName=upkeep StartTime=now Duration=60 Nodes=n1 Flags=WEEKDAY", "flag WEEKDAY"),
        ("+3 nodes like c1", "there is no node 'c1'"),
        ("qos.hihg.priority=5", "no job is of 'hihg'"),
        ("associations.phyisics.shares=5", "no job is of 'phyisics'"),
    ],
)
def test_changes_that_fit_no_scenario_are_refused_in_one_line(twin: Path, change: str, words: str) -> None:
    code, _, err = call_here(["slurm", "what-if", twin, "--set", change])
    assert code == 1 and words in err and len(err.splitlines()) == 1


def test_what_users_do_about_jobs_that_ask_for_too_much_time(twin: Path) -> None:
    """Jobs of batch ask for 10 minutes and run for up to 9.5; half as much is allowed."""
    arguments = ["slurm", "what-if", twin, "--set", "PartitionName=batch MaxTime=5", "--users", "rigid"]
    found = {}
    for rule in ("leave", "shorten", "split"):
        code, out, err = call_here(
            [*arguments, "--seeds", "1", "--json", "--longer", rule, "-e", twin / rule]
        )
        assert (code, err) == (0, "")
        effect = json.loads(out)["all"]
        jobs = pd.read_csv(twin / f"{rule}_after_jobs.csv", dtype={"job_id": str}).set_index("job_id")
        found[rule] = effect["jobs"], effect["no_more"], effect["new"]
        if rule == "shorten":
            killed = set(jobs.index[jobs["success"] == 0])
            assert killed == {"6", "7", "9", "10", "16", "18"}, "of batch, and longer than Slurm takes to see"
        if rule == "split":
            parts = jobs.loc[["6", "6part2"]]  # the sixth runs for 385 s
            assert parts["execution_time"].sum() == pytest.approx(385.9, abs=1)
            assert parts["starting_time"].iloc[1] >= parts["finish_time"].iloc[0]
    assert found["leave"] == (6, 12, 0) and found["shorten"] == (18, 0, 0)
    jobs, no_more, new = found["split"]
    assert (jobs, no_more) == (18, 0) and new > 0


def test_nodes_that_are_not_there_are_refused(twin: Path) -> None:
    code, _, err = call_here(["slurm", "what-if", twin, "--set", "PartitionName=batch Nodes=n[1-9]"])
    assert code == 1 and "partition 'batch' has node 'n3', which " in err and len(err.splitlines()) == 1


def test_nothing_to_change_and_folders_without_a_scenario_are_told(twin: Path, tmp_path: Path) -> None:
    code, _, err = call_here(["slurm", "what-if", twin])
    assert code == 1 and "give --set CHANGE or --other DIR" in err
    code, _, err = call_here(["slurm", "what-if", tmp_path, "--set", "PriorityWeightAge=1"])
    assert code == 1 and "there is no such file" in err


def test_nodes_move_between_partitions(twin: Path) -> None:
    changes = "--set", "PartitionName=batch Nodes=n1", "--set", "PartitionName=short Nodes=n2"
    code, out, err = call_here(["slurm", "what-if", twin, *changes, "--seeds", "1", "--json"])
    assert code == 0, err
    assert json.loads(out)["only_before"], "jobs of more than four cores do not fit on one node"


def test_a_run_tells_the_use_of_whole_nodes_and_why_jobs_stay_pending(tmp_path: Path) -> None:
    """For 100 s, two jobs of one core have a node of four cores each; a third has too long a limit."""
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nEnforcePartLimits=NO\nNodeName=n[1-2] CPUs=4\n"
        "PartitionName=p Nodes=ALL Default=YES MaxTime=60 OverSubscribe=EXCLUSIVE\n"
    )
    rows = ["0,100,-t 10", "0,100,-t 10", "0,100,-t 120"]
    (tmp_path / "jobs.csv").write_text("\n".join(["at,run,args", *rows]) + "\n")
    twin = tmp_path / "twin"
    assert call_here(["slurm", "import", tmp_path, twin])[0] == 0
    run = ["run", "-w", twin / "workload.json", "-p", twin / "platform.toml", "-s", "slurm"]
    run += ["-o", f"configuration_file={twin / 'slurm.toml'}", "-e", tmp_path / "out"]
    code, out, _ = call_here(run)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert code == 0 and "pending: PartitionTimeLimit 1" in lines
    found = json.loads(call_here([*run, "--json"])[1])
    assert found["with_whole_nodes"] == pytest.approx(4 * found["utilization"])
    assert f"with all of whole nodes {found['with_whole_nodes']:.1%}" in lines
