"""Small changes of good inputs: some break how a text is written, others only what it says."""

from __future__ import annotations

import re
from functools import lru_cache
from random import Random

#: What may stand for a value in a text, so that what is around it can still be read.
VALUES = [
    *(b"null", b"true", b"0", b"-1", b"1", b"7", b"0.5", b"-0.0", b"1e-320", b"1e308", b"-1e308", b"1e999"),
    *(b"2147483648", b"9223372036854775807", b"9" * 20, b"9" * 310, b"NaN", b"Infinity", b"-Infinity"),
    *(b'""', b'"x"', b'"0"', b'"0-3"', b'"w0!1"', b'"w0!"', b'"a:b"', b'"0-99999999999"', b'"\\u0000"'),
    *(b'"\\u001b[2J"', b'"\\ud800"', b"{}", b"[]", b"[null]", b'{"a":1}', b"[[[[]]]]", b'"../../x"'),
    *(b"a", b"x,y", b"1970-01-01", b"01:02:03", b"4GB", b"'", b"%s%n", b"&lt;", b"=", b"1-5:2"),
]

#: What breaks the text itself, or is too long for anything.
PIECES = [
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1b[2J",
        b'"',
        b"\\",
        b",",
        b"|",
        b";",
        b"!",
        b"\r\n",
        b"#",
    ),
    *(b"<!ENTITY", b"/etc/passwd", b"9" * 4301, b"[" * 2000, b'{"a":' * 2000, b"<zone>" * 300),
]

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?|[A-Za-z_]+')


@lru_cache(maxsize=1000)
def _tokens(content: bytes) -> tuple[tuple[int, int], ...]:
    """Where the words, numbers and strings of a text stand."""
    return tuple(found.span() for found in _TOKEN.finditer(content)) or ((0, len(content)),)


def mutate(random: Random, content: bytes) -> bytes:
    """One to eight small changes."""
    return _misspell(random, content) if random.random() < 0.3 else _misstate(random, content)


def _misstate(random: Random, content: bytes) -> bytes:
    """Put other values where some are: such that break things, or some from elsewhere in the text."""
    tokens = _tokens(content)
    pieces, last = [], 0
    for start, end in sorted({random.choice(tokens) for _ in range(random.choice((1, 1, 1, 2, 3)))}):
        if random.random() < 0.8:
            value = random.choice(VALUES)
        else:
            first, beyond = random.choice(tokens)
            value = content[first:beyond]
        pieces += content[last:start], value
        last = end
    return b"".join((*pieces, content[last:]))


def _misspell(random: Random, content: bytes) -> bytes:
    """Replace, remove and repeat bytes, wherever they are."""
    text = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 1, 1, 4, 20)))
        match random.randrange(4):
            case 0:
                text[start:end] = random.choice(PIECES)
            case 1:
                text[start:end] = random.randbytes(end - start)
            case 2:
                del text[start : start + random.choice((1, 10, 1000))]
            case _:
                other = random.randrange(len(text) + 1)
                text[start:start] = text[other : other + random.choice((5, 50, 500))]
    return bytes(text)
