"""Tables over many runs: means over repetitions, differences to a baseline, comparisons in pairs."""
