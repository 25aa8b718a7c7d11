"""Commands, those that belong together in one file; parsing and printing only.

A command's module imports what its options are made of, and inside its functions what they use: to show the
help of any command, nothing is loaded that simulates, draws or computes.
"""
