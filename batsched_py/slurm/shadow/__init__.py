"""A twin beside a live Slurm, which forecasts, keeps score of itself, and never acts."""
