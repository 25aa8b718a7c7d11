"""A kind of log of one's own, as the example has it."""

from __future__ import annotations

from pathlib import Path

from batsched_py.workload.sources import read_log
from tests.processes import call_here

EXAMPLE = f"{Path(__file__).parents[3] / 'examples' / 'own_log.py'}:ThreeWords"


def test_a_kind_of_ones_own_is_read_and_written(tmp_path: Path) -> None:
    words, swf, again = tmp_path / "jobs.txt", tmp_path / "jobs.swf", tmp_path / "again.txt"
    words.write_text("0 4 60\n30 1 900\n")
    assert call_here(["convert", words, swf, "--from", EXAMPLE])[0] == 0
    log = read_log(swf)
    assert (log.submit.tolist(), log.processors.tolist(), log.run_time.tolist()) == (
        [0, 30],
        [4, 1],
        [60, 900],
    )
    assert call_here(["convert", swf, again, "--to", EXAMPLE])[0] == 0
    assert again.read_text() == words.read_text()


def test_what_it_cannot_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text("soon 4 60\n")
    code, _, err = call_here(["convert", tmp_path / "jobs.txt", tmp_path / "x.swf", "--from", EXAMPLE])
    assert code == 1 and err.count("\n") == 1 and "jobs.txt: could not convert string 'soon'" in err
