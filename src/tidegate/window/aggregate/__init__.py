"""Partial aggregation: partials of panes merged into the results of windows.

aggregates.py    the catalogue: the parts of each aggregate, and how they are merged
merge_runs.py    several sorted runs of partials in one order
closing.py       the range of merged partials that makes up each window
combine.py       merges columns over these ranges, with the modules below
columns.py       a column of partials
sliding.py       sums, minima and maxima; chosen.py: rows; moments.py: variances; sums.py: exact sums
lists.py         lists and sets; fold.py: sketches and user-defined states
finals.py        results from merged partials
sketches.py      the size of a sketch for a given error
udaf.py          user-defined aggregates
"""
