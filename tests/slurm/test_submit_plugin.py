"""Submit plugins: a cluster's own code that changes and refuses jobs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.processes import call_here

ROOT = Path(__file__).parents[2]
EXAMPLE = f"{ROOT / 'examples' / 'submit_plugin.py'}:ShortJobs"
CONF = """\
SelectType=select/cons_tres
NodeName=n[1-2] CPUs=4
PartitionName=long Nodes=n1 Default=YES
PartitionName=short Nodes=n2
"""


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.csv").write_text("at,run,args\n0,100,-A a -t 90\n0,100,-A a -t 30\n0,100,-t 30\n")
    code, _, error = call_here(["slurm", "import", tmp_path, tmp_path / "twin", "--no-check"])
    assert (code, error) == (0, "")
    return tmp_path / "twin"


def run(twin: Path, *options: str) -> tuple[int, str, pd.DataFrame]:
    words = ["run", "-w", twin / "workload.json", "-p", twin / "platform.toml", "-s", "slurm"]
    words += ["-o", f"configuration_file={twin / 'slurm.toml'}", *options, "-e", twin / "out"]
    code, _, error = call_here(words)
    return code, error, pd.read_csv(twin / "out_jobs.csv").set_index("job_id") if not code else pd.DataFrame()


def test_the_example_sends_short_jobs_elsewhere_and_refuses_others(twin: Path) -> None:
    _, _, plain = run(twin)
    assert plain["allocated_resources"].tolist() == [0, 1, 2]
    code, error, jobs = run(twin, "-o", f"submit_plugin={EXAMPLE}")
    assert (code, error) == (0, "")
    assert jobs["allocated_resources"].dropna().to_dict() == {1: 0, 2: 4}
    assert jobs.loc[3, "final_state"] == "REJECTED"


def test_a_time_limit_may_become_shorter_and_then_counts(twin: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(HEAD + "        asked.time_limit = 60.0\n")
    code, _, jobs = run(twin, "-o", f"submit_plugin={plugin}:Own")
    assert code == 0
    assert all(60 <= length < 100 for length in jobs["execution_time"])


HEAD = """\
from batsched_py.slurm.policy.submit_plugin import SubmitPlugin
class Own(SubmitPlugin):
    def submit(self, asked, job):
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("asked.partitions = ('gone',)", "submit plugin 'own', job 1: there is no partition 'gone'"),
        ("asked.time_limit = 1e9", "a time limit of 5400 s cannot become 1e+09 s"),
        ("asked.nice = 'x'", "Expected `int`, got `str`"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_mistakes_of_a_plugin_are_told_in_one_line(twin: Path, tmp_path: Path, line: str, told: str) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(HEAD + f"        {line}\n")
    code, error, _ = run(twin, "-o", f"submit_plugin={plugin}:Own")
    assert code != 0
    assert told in error
    assert error.count("\n") == 1


def test_code_of_others_is_not_executed(twin: Path, tmp_path: Path) -> None:
    (tmp_path / "imported.json").write_text("{}")
    plugin = tmp_path / "own.py"
    plugin.write_text("raise SystemExit('executed')\n")
    code, error, _ = run(twin, "-o", f"submit_plugin={plugin}:Own")
    assert code != 0
    assert "is not executed" in error
