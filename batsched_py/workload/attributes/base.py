"""What gives attributes to jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any


class JobAttributes(ABC):
    """Attributes of jobs, made from what a log says about them."""

    @abstractmethod
    def of(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """The attributes of a job, by name: numbers, texts, and what JSON makes of these.

        ``record`` has all columns of the log by their names, those that the format does not have too; -1
        means unknown. What this gives is in ``job.extra``.
        """
