"""The Standard Workload Format of the Parallel Workloads Archive."""

from pathlib import Path

from batsched_py.workload.sources import Source
from batsched_py.workload.swf.log import SwfLog, write_swf
from batsched_py.workload.swf.reader import read_swf


class Swf(Source):
    """Logs in the Standard Workload Format, plain or compressed with gzip."""

    name = "swf"
    endings = (".swf", ".swf.gz")

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        return read_swf(path)

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a log."""
        write_swf(path, log)

    def recognises(self, beginning: bytes) -> bool:
        """Comments behind a semicolon, with a key, come first."""
        return beginning.startswith((b"; Version:", b";Version:"))
