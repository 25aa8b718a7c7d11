"""What every policy is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from batsched_py.schedulers.cluster import Cluster


class Scheduler(ABC):
    """A scheduling policy.

    A subclass in a file of its own is all it takes. Options are dataclass fields, with their meaning in
    ``Annotated[..., Meta(description=...)]``; the first line of the docstring is what lists show.
    """

    name: ClassVar[str]
    """How the policy is called on the command line."""

    def begin(self, cluster: Cluster) -> None:
        """Prepare; called once, before any job is submitted."""
        return None

    @abstractmethod
    def schedule(self, cluster: Cluster) -> None:
        """Decide what to do now; called once for each message, after its events are known."""
