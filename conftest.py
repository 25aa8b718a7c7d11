"""Which modules of the package are collected for their doctests."""

from __future__ import annotations

from importlib.util import find_spec

from batsched_py.core import TWINS

collect_ignore_glob = [] if find_spec("batsched_py._native") else [f"batsched_py/*/{TWINS}.py"]
"""The compiled classes are not there where there was no compiler."""
