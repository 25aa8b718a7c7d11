"""Bandwidths and latencies as a platform file writes them."""

from __future__ import annotations

import re
from math import isfinite

_DECIMAL = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_BANDWIDTHS = {"": 1.0} | {
    f"{prefix}{unit}": scale * factor
    for unit, scale in (("Bps", 1.0), ("bps", 0.125))
    for prefix, factor in (
        ("", 1.0),
        *((prefix, 1000.0**power) for power, prefix in enumerate(_DECIMAL, 1)),
        *((prefix, 1024.0**power) for power, prefix in enumerate(_BINARY, 1)),
    )
}
_TIMES = {
    "": 1.0,
    "w": 604800.0,
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
}
_NUMBER = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")


def parse_bandwidth(text: str) -> float:
    """Read a bandwidth in bytes per second, which must be more than 0.

    >>> parse_bandwidth("125MBps"), parse_bandwidth("1Gbps"), parse_bandwidth("1KiBps")
    (125000000.0, 125000000.0, 1024.0)
    """
    bandwidth = _value(text, _BANDWIDTHS)
    if bandwidth is None or not isfinite(bandwidth):
        raise ValueError(f"{text.strip()!r} is not a bandwidth like '125MBps' or '1Gbps'")
    if bandwidth == 0:
        raise ValueError("a bandwidth must be more than 0")
    return bandwidth


def parse_latency(text: str) -> float:
    """Read a latency in seconds.

    >>> parse_latency("2ms"), parse_latency("0")
    (0.002, 0.0)
    """
    latency = _value(text, _TIMES)
    if latency is None or not isfinite(latency):
        raise ValueError(f"{text.strip()!r} is not a latency like '50us' or '1ms'")
    return latency


def _value(text: str, units: dict[str, float]) -> float | None:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]
