"""Reading files piece by piece, whoever made them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.workload import lines
from batsched_py.workload.lines import read_lines


@given(text=st.text("ab\n").map(str.encode), compressed=st.booleans())
def test_pieces_are_whole_lines_and_all_of_them(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, compressed: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(gzip.compress(text) if compressed else text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "PIECE", 4)
        pieces = list(read_lines(path))
    assert b"".join(pieces) == text
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_a_compressed_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lines, "HARMLESS", 1 << 20)
    path = tmp_path / "bomb.swf.gz"
    path.write_bytes(gzip.compress(b"0 1 2 3\n" * (1 << 20)))
    with pytest.raises(InputError) as error:
        list(read_lines(path))
    limit = lines.HIGHEST_RATIO * path.stat().st_size
    assert str(error.value) == (
        f"{path}: unpacks to more than {limit:,} bytes, which is more than {lines.HIGHEST_RATIO} times its "
        "size; if it is a log nevertheless, gunzip it first"
    )


def test_a_small_file_may_be_compressed_as_well_as_can_be(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(b"\n" * (1 << 20)))
    assert lines.HIGHEST_RATIO * path.stat().st_size < 1 << 20
    assert sum(map(len, read_lines(path))) == 1 << 20


@pytest.mark.parametrize("end", [b"", b"\nanother\n"])
def test_a_line_without_end_is_refused(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(b"one\n" + b"x" * (3 * lines.LONGEST_LINE) + end)
    with pytest.raises(InputError, match=r"log\.swf: has a line of more than 1,048,576 bytes"):
        list(read_lines(path))
