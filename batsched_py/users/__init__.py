"""Who submits: one behaviour a file.

A user says when it acts next and hears when its jobs start and end; it never sees a scheduler.
To write a behaviour, subclass :class:`Behaviour` and :class:`User` in a file of your own (see ``rigid.py``).
"""

from batsched_py.users.base import (
    Action,
    Behaviour,
    Behaviours,
    Remark,
    Submission,
    User,
    Withdrawal,
    WrappedUser,
    Wrapper,
)
from batsched_py.users.broker import Broker
from batsched_py.users.named import EachUser

#: The known behaviours.
USERS = Behaviours(
    "user behaviour",
    Behaviour,  # type: ignore[type-abstract]
    package="batsched_py.users",
    group="batsched_py.users",
)

__all__ = [
    "USERS",
    "Action",
    "Behaviour",
    "Broker",
    "EachUser",
    "Remark",
    "Submission",
    "User",
    "Withdrawal",
    "WrappedUser",
    "Wrapper",
]
