"""The tool that puts faults into the code, on a small checkout."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, UNNOTICED, Area, CopyFails, too_little_noticed
from tests.mutants.faults import faults_in

CODE = """\
def less(one, other):
    return one < other


def twice(one):
    return one + one


def nothing(one):
    return one - one
"""
TESTS = """\
from toy.numbers import less

def test_less():
    assert less(1, 2) and not less(2, 2)
"""
AREA = Area(["toy"], ["tests"])


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # its tests need none, and start sooner
    root = tmp_path / "toy"
    for name, content in {"toy/numbers.py": CODE, "tests/test_of_less.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(content)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_each_fault_is_noticed_or_named(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {"toy/numbers.py: return one - one": "nobody calls it"}
    assert too_little_noticed(checkout, {"toy": AREA}, 20, 1, reasons) == ["toy"]
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "  NOT NOTICED: toy/numbers.py: return one + one",
        "  not noticed, because nobody calls it: toy/numbers.py: return one - one",
        "toy: 1 of 3 noticed, 1 cannot be",
    ]
    assert (checkout / "toy/numbers.py").read_text() == CODE


def test_tests_that_fail_anyway_notice_nothing(checkout: Path) -> None:
    (checkout / "tests/test_of_less.py").write_text(TESTS.replace("not ", ""))
    with pytest.raises(CopyFails, match=r"toy: its tests fail without any fault: FAILED tests/test_of_less"):
        too_little_noticed(checkout, {"toy": AREA}, 20, 1, {})


def test_what_is_not_noticed_is_still_in_the_code() -> None:
    reasons = tomllib.loads(UNNOTICED.read_text(encoding="utf-8"))
    files = {Path(name.partition(": ")[0]) for name in reasons}
    assert set(reasons) <= {fault.name for path in files for fault in faults_in(ROOT, path)}
