"""Policies around policies on the command line: in one process, and in two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import PATIENCE, call_here, serving

ROOT = Path(__file__).parents[2]
POWER60 = ROOT / "tests" / "data" / "golden" / "power60_sleeper"
SIMULATED = ["-w", str(POWER60 / "power60.json"), "-p", str(POWER60 / "power8.xml")]
#: Files of an energy account that both ways of running write.
FILES = ("jobs", "consumed_energy", "pstate_changes", "machine_states")


@pytest.fixture
def decided(tmp_path: Path) -> list[str]:
    """All wrappers at once."""
    (tmp_path / "prices.csv").write_text("time,value\n0,30\n3000,10\n6000,30\n")
    options = {"watts": 1500, "after": 30, "most": 2000}
    return [
        "--price",
        str(tmp_path / "prices.csv"),
        "-s",
        "capped(sleeping(deferring(easy)))",
        *(part for key, value in options.items() for part in ("-o", f"{key}={value}")),
    ]


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_two_processes_write_the_bytes_of_one(protocol: str, decided: list[str], tmp_path: Path) -> None:
    assert call_here(["run", *SIMULATED, "--energy", *decided, "-e", f"{tmp_path}/one"])[0] == 0
    with serving(*decided) as service:
        options = ["--protocol", protocol, "--timeout", str(PATIENCE), "-s", service.endpoint]
        if protocol == "4":
            options += ["--energy", "-e", f"{tmp_path}/two"]
        else:
            traced = ["--energy-host", "--trace-machine-state", "--trace-pstate-changes"]
            options += ["", *traced, "-e", f"{tmp_path}/two_"]
        assert call_here(["batsim", *SIMULATED, *options]) == (0, "", "")
    for name in FILES:
        one, two = (tmp_path / f"{side}_{name}.csv" for side in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_the_validator_checks_a_cap(decided: list[str], tmp_path: Path) -> None:
    assert call_here(["run", *SIMULATED, "--energy", *decided, "-e", f"{tmp_path}/out"])[0] == 0
    jobs, platform = f"{tmp_path}/out_jobs.csv", SIMULATED[2:]
    assert call_here(["validate", jobs, *platform, "--power-cap", "1500"])[0] == 0
    code, said, _ = call_here(["validate", jobs, *platform, "--power-cap", "1400"])
    assert code == 1 and "power at " in said
    assert call_here(["validate", jobs, "--power-cap", "1400"])[0] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "deferring", "--price", "nowhere.csv"], "nowhere.csv: cannot be read (No such file"),
        (["-s", "sleeping(no-such)"], "there is no scheduler 'no-such'"),
        (["-s", "sleeping(easy"], "there is no scheduler 'sleeping(easy'"),
        (["-s", "capped", "-o", "watts=0"], "Expected `float` > 0.0"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    code, _, said = call_here(["run", *SIMULATED, *arguments, "-e", f"{tmp_path}/out"])
    assert code == 1
    assert message in said
    assert len(said.splitlines()) == 1
