"""``batsim`` by its name, for scripts that know no other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.processes import PATIENCE, ROOT, call_here, environment, serving

SCRIPT = """\
#!/bin/sh
# A script that was written for the real Batsim.
set -e
batsim --version
batsim -s "$1" -p "$2" -w "$3" -e "$4" -q
"""


def test_a_shell_script_calls_it_as_it_calls_the_real_one(tmp_path: Path) -> None:
    code, said, error = call_here(["batsim", "--install", tmp_path / "my programs"])
    assert code == 0, error
    assert said == f"{tmp_path / 'my programs' / 'batsim'}\n"
    assert "Add" in error and "to PATH" in error
    script = tmp_path / "study.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    platform, workload = ROOT / "platforms" / "cluster64.xml", ROOT / "workloads" / "sample.json"
    path = os.pathsep.join([str(tmp_path / "my programs"), "/usr/bin", "/bin"])
    with serving("-s", "fcfs") as service:
        done = subprocess.run(
            [script, service.endpoint, platform, workload, tmp_path / "by_name"],
            env=environment(PATH=path),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("batsched-py batsim, version ")
    code, _, error = call_here(["run", "-p", platform, "-w", workload, "-s", "fcfs", "-e", tmp_path / "run"])
    assert code == 0, error
    assert (tmp_path / "by_name_jobs.csv").read_bytes() == (tmp_path / "run_jobs.csv").read_bytes()


def test_it_is_installed_again_but_replaces_no_other_batsim(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    for _ in range(2):
        assert call_here(["batsim", "--install", ours])[0] == 0
    other.mkdir()
    (other / "batsim").write_bytes(b"\x7fELF")
    code, _, error = call_here(["batsim", "--install", other])
    assert code == 1
    assert error == (
        f"batsched-py: error: {other / 'batsim'}: is there already, and is another Batsim; "
        "choose another folder\n"
    )
    assert (other / "batsim").read_bytes() == b"\x7fELF"


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, error = call_here(["batsim", "--install", tmp_path / "file" / "bin"])
    assert code == 1
    assert error.count("\n") == 1
    assert "cannot be written" in error
