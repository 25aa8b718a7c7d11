"""From the lines of a ``slurm.conf`` to the tables of a configuration."""
