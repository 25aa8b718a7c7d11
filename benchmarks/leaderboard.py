"""The leaderboard of docs/benchmark.md: 20 policies on all tasks of the benchmark.

    nice .venv/bin/python benchmarks/leaderboard.py ../shared/logs

Results are kept in ``benchmarks/results``; what is done there is not done again. The tables go into the page
of the documentation, and a page with figures into ``out/benchmark``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from batsched_py.benchmark.results import Policy, Result, run
from batsched_py.benchmark.table import leaderboard, markdown, write_leaderboard
from batsched_py.benchmark.tasks import Logs, standard

ORDERS = (
    "shortest",
    "smallest-area",
    "largest-area",
    "expansion-factor",
    "wfp3",
    "unicep",
    "f1-queue",
    "fair-share",
)

POLICIES = [
    Policy.parse([name], {})
    for name in (
        "easy", "fcfs", "sjf", "ljf", "filler", "easy-sjbf", "conservative", "multi-queue", "user-aware",
        "pybatsim:easyBackfill",
    )
]  # fmt: skip
POLICIES += [Policy.parse(["easy"], {"order": order}) for order in ORDERS]
POLICIES += [
    Policy.parse(["easy"], {"backfill": "shortest"}),
    Policy.parse(["python", "examples/any-language/fcfs.py", "{socket}"], {}, "fcfs.py over ZeroMQ"),
]

RESULTS = Path("benchmarks/results")
DOCUMENT = Path("docs/benchmark.md")

#: Between these lines the page has what is made here.
_BEGIN, _END = "<!-- leaderboard -->\n", "<!-- end of the leaderboard -->\n"


def main(folder: Path) -> None:
    """Do what is not done yet, and write the tables."""
    benchmark = standard()
    logs = Logs(benchmark, [folder])
    logs.check()
    for policy in POLICIES:
        result = run(policy, benchmark, logs, RESULTS / policy.file_name)
        print(f"{policy.name}: {result.seconds:.0f} s of CPU", file=sys.stderr, flush=True)
    write()


def write() -> None:
    """Write the tables of the results that are there."""
    results = [Result.read(file) for file in sorted(RESULTS.glob("*.benchmark.json"))]
    found = leaderboard(results, standard())
    write_leaderboard(Path("out/benchmark/leaderboard.html"), found)
    before, _, rest = DOCUMENT.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{markdown(found)}\n{_END}{after}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
