"""A kind of log of your own, with one job a line: when it came, how many processors, how many seconds.

batsched-py run -w jobs.txt --log-kind examples/own_log.py:ThreeWords --hosts 64 -s easy
batsched-py convert jobs.txt jobs.swf --from examples/own_log.py:ThreeWords
batsched-py convert jobs.swf jobs.txt --to examples/own_log.py:ThreeWords
"""

from pathlib import Path

import numpy as np

from batsched_py.errors import InputError
from batsched_py.workload.sources import Source
from batsched_py.workload.swf.log import SwfLog, swf_log


class ThreeWords(Source):
    """Lines like ``3600 16 900``."""

    name = "three-words"
    endings = (".txt",)

    def read(self, path: Path) -> SwfLog:
        """Columns that are not given are unknown."""
        try:
            submit, processors, seconds = np.loadtxt(path, ndmin=2).T
        except ValueError as error:
            raise InputError(f"{path}: {error}") from None
        columns = {"submit": submit, "run_time": seconds, "requested_processors": processors.astype(np.int64)}
        return swf_log(columns, path=str(path))

    def write(self, path: Path, log: SwfLog) -> None:
        """What such a file cannot keep is lost."""
        np.savetxt(path, np.column_stack([log.submit, log.processors, log.run_time]), fmt="%d")
