"""Units of bandwidths and latencies, as SimGrid's manual names them."""

from __future__ import annotations

import pytest

from batsched_py.simulator.network.zones import parse_bandwidth, parse_latency


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("3", 3.0), ("3s", 3.0), ("2m", 120.0), ("2h", 7200.0), ("2d", 172_800.0), ("2w", 1_209_600.0)),
        *(("5ms", 0.005), ("5us", 5e-6), ("5ns", 5e-9), ("5ps", 5e-12)),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_latency(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        *(("3Bps", 3.0), ("8bps", 1.0), ("2kBps", 2e3), ("2MBps", 2e6), ("2GBps", 2e9), ("2TBps", 2e12)),
        *(("8Mbps", 1e6), ("2KiBps", 2048.0), ("2MiBps", 2.0**21), ("8Gibps", 2.0**30), ("2TiBps", 2.0**41)),
    ],
)
def test_bandwidths(text: str, bytes_per_second: float) -> None:
    assert parse_bandwidth(text) == bytes_per_second
