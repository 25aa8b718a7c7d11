"""The dialects there are. A new one is a module of its own here, and a line below."""

from __future__ import annotations

from batsched_py.protocol.batsim4 import BATSIM4

DIALECTS = {dialect.name: dialect for dialect in (BATSIM4,)}

__all__ = ["BATSIM4", "DIALECTS"]
