"""The kinds of figures: one a file, each with functions that prepare its data and a class that draws it.

The first line of a file says what its figure shows. It is what `batsched-py plot --help` lists, which looks
at these lines alone.
"""
