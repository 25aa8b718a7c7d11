"""``python -m tests.fuzz``: fuzz until the time is over."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path
from random import Random

from tests.fuzz import __doc__ as about
from tests.fuzz.finding import CORPUS, fault, memory, save, shrink
from tests.fuzz.mutation import mutate
from tests.fuzz.targets import TARGETS

#: So many messages of a kind are fed for each file of a kind, for they are quick.
MESSAGES = 20


def main() -> int:
    """Fuzz until the time is over; 1 if something was found."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="Where to save what is found.")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    targets = options.target or list(TARGETS)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts, found = fuzz(
            targets, Random(options.seed), began + options.seconds, Path(folder), options.corpus
        )
    kinds = {True: 0, False: 0}
    for target, count in counts.items():
        kinds[TARGETS[target].is_message] += count
    print(
        f"seed {options.seed}: {kinds[True]} messages and {kinds[False]} files in "
        f"{time.monotonic() - began:.0f} s ({time.process_time():.0f} s of processor time), "
        f"{found} faults, {memory()} MiB at most"
    )
    print(", ".join(f"{count} x {target}" for target, count in counts.items()))
    return int(bool(found))


def fuzz(
    targets: list[str], random: Random, end: float, folder: Path, corpus: Path
) -> tuple[dict[str, int], int]:
    """How many inputs of each kind were fed until the clock says so, and how many faults they found."""
    inputs = {target: TARGETS[target].seeds() for target in targets}
    turns = [target for target in targets for _ in range(MESSAGES if TARGETS[target].is_message else 1)]
    counts = dict.fromkeys(targets, 0)
    found: set[tuple[str, str]] = set()
    while time.monotonic() < end:
        for target in turns:
            content = mutate(random, random.choice(inputs[target]))
            counts[target] += 1
            wrong = fault(target, content, folder)
            if wrong is not None and (target, wrong) not in found:
                found.add((target, wrong))
                path = save(target, shrink(target, content, wrong, folder), corpus)
                print(f"{target}: {wrong}: saved as {path.name}", flush=True)
    return counts, len(found)


if __name__ == "__main__":
    sys.exit(main())
