"""Who submits: one behaviour a file.

A user says when it submits next and hears when its jobs end; it never sees a scheduler.
To write a behaviour, subclass :class:`Behaviour` and :class:`User` in a file of your own (see ``rigid.py``).
"""

from batsched_py.plugins import Registry
from batsched_py.users.base import Behaviour, Submission, User
from batsched_py.users.broker import Broker

#: The known behaviours.
USERS = Registry[Behaviour](
    "user behaviour",
    Behaviour,  # type: ignore[type-abstract]
    package="batsched_py.users",
    group="batsched_py.users",
)

__all__ = ["USERS", "Behaviour", "Broker", "Submission", "User"]
