"""What a policy remarks on jobs, for whoever wants to know why it decides as it does."""

from __future__ import annotations

from msgspec import Struct


class Remark(Struct, frozen=True, gc=False):
    """A remark on a job."""

    time: float
    """When it was made."""
    job_id: str
    text: str
    start: float | None = None
    """By when the job is to start, if the remark is about that: its reservation."""
