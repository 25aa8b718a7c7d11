"""Figures for paper: what they compare, how they look, and their kinds in :mod:`~.kinds`.

Nothing is imported from matplotlib before something is drawn, so the data of a figure can be had without it.
"""
