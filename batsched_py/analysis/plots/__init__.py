"""The figures: one a file, each with functions that prepare its data and a ``draw`` that shows it.

Nothing is imported from matplotlib before something is drawn, so the data of a figure can be had without it.
"""
