"""What is fast and what is not, measured against a yardstick in the same run: ``make bench``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import campaign, line, network, nodes, policies, startup, targets, wire, workloads, year  # noqa: E402

LOGS = ROOT.parent / "shared" / "logs"
KTH = LOGS / "KTH-SP2-1996-2.1-cln.swf.gz"
HPC2N = LOGS / "HPC2N-2002-2.2-cln.swf.gz"


def main() -> None:
    """Run all sections; without the large logs, the sample stands in for them."""
    print("Processor time of whole commands:")
    startup.main()
    print("\nFrom a log to written files:")
    if KTH.is_file():
        line.measure(KTH, 100, rounds=5)
        line.measure(HPC2N, 240, rounds=2)
        line.conservative(HPC2N, 240)
    else:
        line.measure(ROOT / "workloads" / "sample.swf", 64, rounds=5)
    line.synthetic()
    print("\nThe same jobs on few hosts and on many:")
    line.widths()
    line.wide_setup()
    line.million()
    print("\nDeciding behind a socket:")
    wire.main()
    print("\nTime per job against the length of the queue:")
    policies.main()
    print("\nWorkloads:")
    workloads.main(HPC2N if HPC2N.is_file() else ROOT / "workloads" / "sample.swf")
    print("\nJobs that communicate:")
    network.main()
    print("\nMachines of nodes:")
    nodes.main()
    print("\nA whole campaign:")
    campaign.main()
    print()
    year.main()
    print("\nWhat was asked of the speed:")
    targets.main()


if __name__ == "__main__":
    main()
