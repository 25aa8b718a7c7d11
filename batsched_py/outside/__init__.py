"""What comes from outside of the machine and its users: failures, closed hours, prices, carbon, temperature.

Each has a file of its own. :class:`~batsched_py.outside.curve.Known` is what policies can ask beforehand.
"""

from typing import Literal

#: How the times to the next failure are distributed.
Law = Literal["exponential", "weibull"]
