"""Small faults that are put into the code, to see whether the tests notice them: ``make mutants``.

Each fault is one change of one expression: another comparison, another operator, a number that is off by one,
a condition the other way round. They are drawn with a fixed seed, so many in each area of the code, and the
tests of that area are run on a copy of the checkout, first without any fault. What no test can notice is
listed in ``unnoticed.toml`` with the reason.
"""
