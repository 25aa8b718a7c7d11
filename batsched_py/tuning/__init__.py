"""Searching for the settings of a scheduler that are best for a machine, and telling whether they hold.

A log is divided by time. Settings are searched on some of its parts, and what is found is compared with
today's settings on others, which the search has not seen.
"""
