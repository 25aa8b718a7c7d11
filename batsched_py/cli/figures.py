"""How figures are shown to people."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(28_763_424), duration(5400), duration(12)
    ('332.91 d', '1.50 h', '12 s')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.2f} {unit}"
    return f"{seconds:.3g} s"
