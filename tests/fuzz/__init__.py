"""A fuzzer: mutates messages and files, and feeds them to whatever reads such, until its time is over.

Whatever comes in, nothing but a :class:`~batsched_py.errors.BatschedError` may come out, within a second and
within 300 MiB. What breaks this is made as small as possible and saved in ``tests/data/corpus``, which
``tests/test_corpus.py`` feeds again in every test run. The same seed makes the same inputs::

    make fuzz SECONDS=3600 SEED=7
"""
