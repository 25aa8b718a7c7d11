"""The property of a host that lists the power states in which it sleeps."""

from __future__ import annotations

import re

from batsched_py.errors import ProtocolError
from batsched_py.protocol.shown import shown


def sleep_pstates(properties: dict[str, str]) -> dict[int, tuple[int, int]]:
    """The power states in a host's ``sleep_pstates``, a text of triplets ``SLEEP:OFF:ON``; none without."""
    text = properties.get("sleep_pstates", "")
    if not re.fullmatch(r"(\s*\d{1,9}\s*:\s*\d{1,9}\s*:\s*\d{1,9}\s*(,|$))*", text, re.ASCII):
        raise ProtocolError(f"property `sleep_pstates`: expected triplets like 1:2:3, got {shown(text)}")
    triplets = [[int(state) for state in triplet.split(":")] for triplet in filter(None, text.split(","))]
    return {sleep: (off, on) for sleep, off, on in triplets}
