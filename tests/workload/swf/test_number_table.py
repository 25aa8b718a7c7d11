from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.workload.swf.reader import read_table

FINITE = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)


@given(st.lists(st.tuples(FINITE, FINITE, FINITE)))
def test_every_number_is_read_as_python_reads_it(rows: list[tuple[float, float, float]]) -> None:
    text = "".join(f" {a!r}  {b!r}\t{c!r} \r\n" for a, b, c in rows).encode()
    values, lines, wrong = read_table(text, columns=3, comment=b";")
    assert values.tolist() == [[float(value) for value in row] for row in rows]
    assert lines.tolist() == list(range(1, len(rows) + 1))
    assert wrong == {}


@given(st.lists(st.text("1-+. eNa;\n", max_size=12), max_size=8))
def test_a_line_is_a_row_exactly_when_python_reads_all_its_words(texts: list[str]) -> None:
    lines = "\n".join(texts).split("\n")
    expected, faulty = {}, set()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith(";"):
            continue
        try:
            row = [float(word) for word in words]
        except ValueError:
            faulty.add(number)
            continue
        if len(row) == 2 and np.isfinite(row).all():
            expected[number] = row
        else:
            faulty.add(number)
    values, numbers, wrong = read_table("\n".join(lines).encode(), columns=2, comment=b";")
    assert dict(zip(numbers.tolist(), values.tolist(), strict=True)) == expected
    assert set(wrong) == faulty


@pytest.mark.parametrize(
    "word", ["nan", "inf", "-Infinity", "1.5e999", "1..2", "0x10", "12-5", "-", "+", "1,5", "fünf"]
)
def test_a_word_that_is_no_finite_number_is_named(word: str) -> None:
    values, _, wrong = read_table(f"1 2\n3 {word}\n".encode(), columns=2, comment=b";")
    assert values.tolist() == [[1, 2]]
    assert wrong == {2: f"{word!r} is not a number"}


def test_words_that_make_up_for_each_other_are_both_seen() -> None:
    """Read as whole numbers, ``12-5`` is one number too many and ``.5`` one too few."""
    values, _, wrong = read_table(b"12-5 1\n.5 1\n", columns=2, comment=b";")
    assert values.tolist() == [[0.5, 1]]
    assert wrong == {1: "'12-5' is not a number"}


def test_lines_are_counted_across_comments_and_bad_lines() -> None:
    text = b"1 2\n; comment\n\n3 4 5\n6 7\nx 8\n9 10"
    values, lines, wrong = read_table(text, columns=2, comment=b";")
    assert values.tolist() == [[1, 2], [6, 7], [9, 10]]
    assert lines.tolist() == [1, 5, 7]
    assert wrong == {4: "3 fields instead of 2", 6: "'x' is not a number"}


def test_an_empty_text_has_no_rows() -> None:
    values, lines, wrong = read_table(b"", columns=18, comment=b";")
    assert values.shape == (0, 18)
    assert len(lines) == 0
    assert wrong == {}
