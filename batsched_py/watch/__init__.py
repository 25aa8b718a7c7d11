"""Watching a simulation while it runs: step by step, or live on a terminal.

Both hang on one thing, a *scene* for each time that a policy was asked (:mod:`batsched_py.watch.scenes`).
"""
