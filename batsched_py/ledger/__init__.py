"""The one account of a machine and its jobs, and Batsim's rules."""
