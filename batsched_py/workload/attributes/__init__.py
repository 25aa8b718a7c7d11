"""Attributes that jobs get from any column of a log, for policies and users that look at them.

A column becomes an attribute by its name. For anything else, subclass :class:`JobAttributes` in a file of
your own, named ``path/to/file.py:ClassName`` as schedulers are; ``examples/job_attributes.py`` is one. Other
distributions offer theirs in the entry-point group ``batsched_py.attributes``.
"""

from batsched_py.plugins import Registry
from batsched_py.workload.attributes.base import JobAttributes

#: The known ones.
ATTRIBUTES = Registry[JobAttributes](
    "kind of attributes",
    JobAttributes,  # type: ignore[type-abstract]
    package="batsched_py.workload.attributes",
    group="batsched_py.attributes",
)

__all__ = ["ATTRIBUTES", "JobAttributes"]
