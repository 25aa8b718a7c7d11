"""How fast a campaign is: the 18 runs on KTH-SP2 with metrics and report, or the sample without that log.

python benchmarks/campaign.py [FOLDER WITH THE LOG]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KTH = "KTH-SP2-1996-2.1-cln.swf.gz"


def main() -> None:
    """Run a plan with all cores, as a user would, and print runs per minute."""
    logs = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "logs"
    plan = "replay-with-feedback" if (logs / KTH).is_file() else "sample"
    found = ["--logs", str(logs)] if logs.is_dir() else []
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        _campaign("run", f"examples/plans/{plan}.toml", "-d", folder, *found)
        simulated = time.perf_counter() - began
        _campaign("report", folder, "--output", f"{folder}/report.html")
        took = time.perf_counter() - began
        runs = len(list(Path(folder, "runs").iterdir()))
    print(f"campaign {plan}: {runs} runs in {took:.1f} s, {60 * runs / took:.0f} runs per minute", end=" ")
    print(f"({simulated:.1f} s to simulate and measure, {took - simulated:.1f} s for the report)")


def _campaign(*arguments: str) -> None:
    command = [sys.executable, "-m", "batsched_py", "campaign", *arguments]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
