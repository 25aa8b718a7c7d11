"""The kinds of figures, related ones in one file: functions that prepare the data and a class that draws it.

What ``shows`` says in a class is what `batsched-py plot --help` lists, which imports no kind.
"""
