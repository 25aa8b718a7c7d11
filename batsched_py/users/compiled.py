"""The compiled classes of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from batsched_py import _native
from batsched_py._native import SessionReplay
from batsched_py.users import broker
from batsched_py.users.base import User

__all__ = ["Broker", "SessionReplay"]


class Broker(_native.Broker, broker.Broker):
    """Merges users, tells each of the starts and ends of its own jobs, and knows when to be woken next."""

    def __init__(self, users: Iterable[User] = (), on_leave: Callable[[User], None] | None = None) -> None:
        self._on_leave = on_leave
        for user in users:
            self.add(user)
