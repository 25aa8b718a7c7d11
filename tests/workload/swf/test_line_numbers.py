"""The lines that are named when something is wrong, in logs that are read in many pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.workload.swf import reader
from batsched_py.workload.swf.reader import read_swf


@pytest.mark.parametrize("bad", [3, 57, 100])
def test_a_bad_line_is_named_by_its_number_in_the_file(
    bad: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [f"{number} {number} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1" for number in range(1, 101)]
    lines[bad - 1] = "nonsense"
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(reader, "_PIECE", 200)
    assert len(read_swf(tmp_path / "log.swf")) == 99
    assert f"line {bad}: " in caplog.text


def test_a_number_that_came_before_is_named_by_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [f"{number} {number} 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1" for number in range(1, 101)]
    lines[70] = lines[70].replace("71 71", "5 71", 1)
    (tmp_path / "log.swf").write_text("; a comment\n\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr(reader, "_PIECE", 200)
    assert len(read_swf(tmp_path / "log.swf")) == 99
    assert "line 73: job_number came before" in caplog.text
