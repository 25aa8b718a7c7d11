"""A benchmark of scheduling policies that anyone can repeat to the byte.

Its tasks are fixed and have a version. A policy that was run on them leaves one file with the digest of every
schedule; whoever doubts it does the same again and compares the digests.
"""
