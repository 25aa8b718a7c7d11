"""A twin of Slurm's scheduler, one concept a file: :mod:`.slurm` is the policy, :mod:`.settings` sets it."""
