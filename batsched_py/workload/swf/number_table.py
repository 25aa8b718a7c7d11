"""A table of numbers in a text, read at the speed of numpy, with its bad lines by number.

Logs have hundreds of thousands of lines, nearly all of them good and nearly all of their fields whole
numbers. So a text is read in pieces of many lines at once, and only a piece that has anything else in it
is read line by line. Pieces are small enough for the arrays in between to stay in the processor's cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]

_PIECE = 1 << 18


def read_table(text: bytes, columns: int, comment: bytes) -> tuple[Numbers, Indices, dict[int, str]]:
    """The rows of numbers in ``text``, the line of each, and what is wrong with other lines.

    Lines count from 1. Blank lines and those that begin with ``comment`` are neither rows nor wrong.

    >>> rows, lines, wrong = read_table(b"# size time\\n1 2.5\\n3\\n4 five\\n6 7\\n", columns=2, comment=b"#")
    >>> rows.tolist(), lines.tolist()
    ([[1.0, 2.5], [6.0, 7.0]], [2, 5])
    >>> wrong
    {3: '1 field instead of 2', 4: "'five' is not a number"}
    """
    all_rows, all_lines = [np.empty((0, columns))], [np.empty(0, dtype=np.intp)]
    wrong: dict[int, str] = {}
    first_line = 1
    for piece in _pieces(text):
        rows, lines, faults = _read_piece(piece, columns, ord(comment))
        all_rows.append(rows)
        all_lines.append(lines + first_line)
        wrong.update({line + first_line: fault for line, fault in sorted(faults.items())})
        first_line += piece.count(b"\n")
    return np.concatenate(all_rows), np.concatenate(all_lines), wrong


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text cut after ends of lines."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start + _PIECE) + 1 or len(text)
        yield text[start:end]
        start = end


def _read_piece(text: bytes, columns: int, comment: int) -> tuple[Numbers, Indices, dict[int, str]]:
    """As :func:`read_table`, with lines that count from 0."""
    letters = np.frombuffer(text, dtype=np.uint8)
    starts, ends = _words(letters)
    line_starts = np.concatenate(([0], np.flatnonzero(letters == ord("\n")) + 1, [len(letters)]))
    first_word = np.searchsorted(starts, line_starts)
    widths = np.diff(first_word)
    filled = np.flatnonzero(widths)
    filled = filled[letters[starts[first_word[filled]]] != comment]
    lines = filled[widths[filled] == columns]
    wrong = {
        int(line): f"{widths[line]} field{'s' if widths[line] > 1 else ''} instead of {columns}"
        for line in filled[widths[filled] != columns]
    }
    words = (first_word[lines, None] + np.arange(columns)).ravel()
    starts, ends = starts[words], ends[words]
    try:
        numbers = _convert(text, starts, ends)
    except ValueError:
        numbers, faults = _convert_one_by_one(text, starts, ends)
        for word, fault in faults.items():
            wrong.setdefault(int(lines[word // columns]), fault)
    rows = numbers.reshape(-1, columns)
    good = ~np.isnan(rows).any(axis=1)
    return rows[good], lines[good], wrong


def _words(letters: NDArray[np.uint8]) -> tuple[Indices, Indices]:
    """Where the words start and end."""
    inside = np.zeros(len(letters) + 2, dtype=np.int8)
    inside[1:-1] = letters > ord(" ")
    change = np.diff(inside)
    return np.flatnonzero(change == 1), np.flatnonzero(change == -1)


def _convert(text: bytes, starts: Indices, ends: Indices) -> Numbers:
    """The numbers between ``starts`` and ``ends``; ValueError when one word may be no number.

    numpy reads whole numbers several times faster than others. So fractions are blanked out first, every
    word is read as a whole number, and the few words that had a fraction are then read again.
    """
    if not len(starts):
        return np.empty(0)
    letters = np.frombuffer(text, dtype=np.uint8)
    dots = np.flatnonzero(letters == ord("."))
    words = np.searchsorted(starts, dots, side="right") - 1
    inside = (words >= 0) & (dots < ends[words])
    dots, words = dots[inside], words[inside]
    whole_ends = ends.copy()
    whole_ends[words] = dots
    last = letters[whole_ends - 1]
    if ((whole_ends == starts) | (last < ord("0")) | (last > ord("9"))).any():
        raise ValueError("a word has no whole part that ends in a digit")
    change = np.zeros(len(letters) + 1, dtype=np.int8)
    change[starts] = 1
    change[whole_ends] = -1
    kept = np.cumsum(change[:-1], dtype=np.int8)
    blanked = np.where(kept, letters, np.uint8(ord(" "))).tobytes().decode("latin-1")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers = np.fromstring(blanked, dtype=np.int64, sep=" ").astype(np.float64)
        except DeprecationWarning as warning:  # how numpy before 2.3 says that a word is no number
            raise ValueError(str(warning)) from None
    if len(numbers) != len(starts):
        raise ValueError("a word is more than one number")
    numbers[words] = [float(text[starts[word] : ends[word]]) for word in words]
    if not np.isfinite(numbers).all():
        raise ValueError("a number is too large")
    return numbers


def _convert_one_by_one(text: bytes, starts: Indices, ends: Indices) -> tuple[Numbers, dict[int, str]]:
    """The same, word by word: NaN for each word that is no finite number, and what is wrong with it."""
    numbers = np.full(len(starts), np.nan)
    faults: dict[int, str] = {}
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        word = text[start:end]
        try:
            number = float(word)
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            numbers[index] = number
        else:
            faults[index] = f"{word.decode(errors='replace')[:20]!r} is not a number"
    return numbers, faults
