"""What comes from outside of the machine and its users: failures, closed hours, prices, carbon, temperature.

Each has a file of its own. :class:`~batsched_py.outside.curve.Known` is what policies can ask beforehand.
"""
