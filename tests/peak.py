"""The most memory that a process has had.

Run as ``python -m tests.peak ARGUMENTS``: does what ``batsched-py ARGUMENTS`` does, and then prints its peak.
Jobs are made as they are submitted, as they are for a large log.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def peak() -> int:
    """The peak of this process in bytes.

    Not what ``getrusage`` tells, since that counts from the peak of the process that started this one.
    """
    found = re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


if __name__ == "__main__":
    from batsched_py.cli.main import main
    from batsched_py.workload.swf import quick_reader

    quick_reader.LARGE = 0
    try:
        main()
    finally:
        print(peak(), file=sys.stderr)
