"""How figures are shown to people."""

from __future__ import annotations

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(28_763_424), duration(5400), duration(12)
    ('332.91 d', '1.50 h', '12 s')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.2f} {unit}"
    return f"{seconds:.3g} s"


def energy(joules: float) -> str:
    """An energy in the unit in which it is paid for.

    >>> energy(7.2e9)
    '2,000.00 kWh'
    """
    return f"{joules / 3.6e6:,.2f} kWh"


def hosts_text(count: int) -> str:
    """So many hosts, in words."""
    return f"{count} host{'s' if count != 1 else ''}"


def two_columns(rows: Sequence[tuple[str, str]]) -> str:
    """Labels on the left, what they stand for on the right, with air around.

    >>> print(two_columns([("hosts", "64"), ("makespan", "12 s")]))
    <BLANKLINE>
      hosts        64
      makespan   12 s
    <BLANKLINE>
    """
    left = max(len(label) for label, _ in rows)
    right = max(len(text) for _, text in rows)
    return "\n".join(["", *(f"  {label:<{left}}   {text:>{right}}" for label, text in rows), ""])


def as_html(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns for a notebook."""
    from html import escape

    cells = (f"<tr><th>{escape(label.strip())}</th><td>{escape(text)}</td></tr>" for label, text in rows)
    return f"<table>{''.join(cells)}</table>"
