"""The compiled class of the decision process."""

from __future__ import annotations

from collections.abc import Iterable

from batsched_py import _native
from batsched_py.decision import desk
from batsched_py.errors import RuleBroken
from batsched_py.ledger.ledger import Ledger
from batsched_py.protocol.events import SimulationBegins
from batsched_py.users.base import User


class SubmissionDesk(_native.SubmissionDesk, desk.SubmissionDesk):
    """Turns what users do into decisions, and tells them what became of their jobs."""

    def __init__(self, users: Iterable[User], begins: SimulationBegins, ledger: Ledger) -> None:
        super().__init__(users, begins, ledger)
        settings = begins.settings
        registry = ledger.registry
        self._registry, self._names, self._profiles = registry, registry.met, registry.profiles
        self._rule_broken = RuleBroken
        self._reuses_profiles = (
            settings.profile_reuse and not settings.acknowledge_dynamic_jobs and not begins.workloads
        )
