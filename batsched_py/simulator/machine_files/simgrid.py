"""Writing a machine as a platform of SimGrid, for a real Batsim."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from batsched_py.simulator.platform import Platform, PlatformHost

_HEAD = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="machine" routing="None">"""


def simgrid_lines(platform: Platform) -> Iterator[str]:
    """The lines of a file with a host for each core and a master; properties say which cores make a node.

    Batsim numbers hosts in the order of their names as plain text. If that is another order than the
    platform's, each name gets its number in front.
    """
    yield _HEAD
    zone = platform.hosts[0].zone_properties
    for name, value in zone.items():
        yield f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>"
    yield '    <host id="master_host" speed="1Gf"/>'
    names = [host.name for host in platform.hosts]
    if names != sorted(names):
        width = len(str(len(names) - 1))
        names = [f"{number:0{width}}-{name}" for number, name in enumerate(names)]
    for name, host in zip(names, platform.hosts, strict=True):
        yield from _host_lines(name, host)
    yield "  </zone>"
    yield "</platform>"


def _host_lines(name: str, host: PlatformHost) -> Iterator[str]:
    properties = {key: value for key, value in host.properties.items() if value}
    speeds = ",".join(f"{state.speed:.17g}f" for state in host.pstates)
    start = f"    <host id={quoteattr(name)} speed={quoteattr(speeds)}"
    if not properties:
        yield f"{start}/>"
        return
    yield f"{start}>"
    for key, value in properties.items():
        yield f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>"
    yield "    </host>"
