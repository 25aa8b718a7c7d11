"""What Python is offered, in the words of the command line: ``import batsched_py as bp``.

``batsched_py`` itself has the public names; each is imported when it is asked for. The commands that simulate
are a thin layer over the same functions.
"""
