"""What the file ``slurm.toml`` may say, one of its tables a module.

Names are those of Slurm, in small letters. Times are in seconds and memory is in MB, whatever unit Slurm has
for them; no limit is ``inf`` for a time, and left out for a number. What is left out has Slurm's default.
"""
