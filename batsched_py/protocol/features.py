"""Expressions about the features of nodes: ``a100 & !(old | slow)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from batsched_py.protocol.shown import shown

_TOKEN = re.compile(r"\s*([A-Za-z0-9_.:+-]+|[&|,!()])")

#: Whether a node with these features is meant.
Meant = Callable[[Collection[str]], bool]


def parse_features(text: str) -> Meant:
    """What an expression means: ``&`` or a comma is *and*, ``|`` is *or*, ``!`` is *not*.

    >>> parse_features("a100 & !(old | slow)")({"a100", "new"})
    True
    """
    tokens: list[str] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or len(tokens) > 200:
            raise ValueError(f"features {shown(text)}: names joined by &, | and ! are expected")
        tokens.append(match[1])
        place = match.end()
    meant = _either(tokens, text)
    if tokens:
        raise ValueError(f"features {shown(text)}: {tokens[0]!r} is not expected there")
    return meant


def _either(tokens: list[str], text: str) -> Meant:
    terms = [_all(tokens, text)]
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        terms.append(_all(tokens, text))
    return lambda features: any(term(features) for term in terms)


def _all(tokens: list[str], text: str) -> Meant:
    terms = [_one(tokens, text)]
    while tokens and tokens[0] in "&,":
        tokens.pop(0)
        terms.append(_one(tokens, text))
    return lambda features: all(term(features) for term in terms)


def _one(tokens: list[str], text: str) -> Meant:
    token = tokens.pop(0) if tokens else ""
    match token:
        case "!":
            meant = _one(tokens, text)
            return lambda features: not meant(features)
        case "(":
            meant = _either(tokens, text)
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"features {shown(text)}: a parenthesis is not closed")
            return meant
        case "" | ")" | "&" | "," | "|":
            raise ValueError(f"features {shown(text)}: a name is missing")
        case _:
            return lambda features: token in features
