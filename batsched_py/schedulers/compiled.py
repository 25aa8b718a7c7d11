"""The compiled class of a policy's view."""

from __future__ import annotations

from batsched_py import _native
from batsched_py.schedulers import cluster


class Cluster(_native.Cluster, cluster.Cluster):
    """The machine with its queue, as a policy sees it at the moment it is asked."""
