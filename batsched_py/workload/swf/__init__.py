"""Logs in the Standard Workload Format (SWF): 18 numbers a job, comments behind a ``;``.

A log is a :class:`~batsched_py.workload.swf.log.SwfLog`: one numpy array for each field, because questions
about a whole log (sessions, cleaning, statistics) are answered quickly that way. There are two readers: the
complete one reports every fault of every line; the quick one makes the jobs of a log that has no fault,
without numpy, which takes longer to import than most logs take to read.
"""
