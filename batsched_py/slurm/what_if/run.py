"""Simulating a scenario before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from batsched_py.api.progress import shown
from batsched_py.slurm.comparison.phases import Phase
from batsched_py.slurm.what_if.outcome import Outcome, Pair, outcome
from batsched_py.slurm.what_if.prepared import Prepared
from batsched_py.users import USERS


def what_if(
    folder: Path,
    changes: Sequence[str],
    other: Path | None,
    users: str,
    user_options: Mapping[str, str],
    repetitions: int,
    export: str | None = None,
) -> Outcome:
    """Simulate a scenario with and without changes, or beside an ``other`` one, once for each seed.

    A seed is for what users draw at random, and for the phases of Slurm's clocks, which both simulations have
    in common: what a change of phases would bring about as well is no effect. How users had reacted is taken
    from the recorded finishes of their jobs; where these are not known, from a simulation before the change.
    The files of the first two simulations begin with ``export``, if they are asked for.
    """
    is_random = "seed" in USERS.options(users) and "seed" not in user_options
    seeds = list(range(repetitions))
    pairs: list[Pair] = []
    hosts = 0
    with (
        TemporaryDirectory(prefix="what-if-") as room,
        shown("pairs of simulations", lambda: (len(pairs), len(seeds))),
    ):
        before = Prepared.of(folder, (), Path(room) / "before")
        after = Prepared.of(other or folder, changes, Path(room) / "after")
        if users != "rigid":
            finishes = before.finishes()
            for scenario in (before, after):
                scenario.remember(finishes)
        for seed in seeds:
            options = {**user_options, "seed": str(seed)} if is_random else dict(user_options)
            phase = Phase.of(seed).options
            one, two = (scenario.simulated(users, options, phase) for scenario in (before, after))
            hosts = one.overview.hosts
            if export is not None and not pairs:
                one.save(f"{export}_before")
                two.save(f"{export}_after")
            pairs.append((before.table(one), after.table(two)))
    return outcome(pairs, list(changes) or [str(other)], users, seeds, hosts)
