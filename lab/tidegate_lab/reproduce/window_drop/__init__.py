"""Experiments of the window drop paper: its figures 10 to 13 and table 4, with counted delays.

scenarios.py           the paper's queries with their delay boxes
placement_figures.py   figures 10 and 11: where the drop stands, in a pipeline and in a fan-out
window_figures.py      figures 12 and 13: by size and by slide of a window, beside the load model
overhead_table.py      table 4: marks and fake rows of a drop that drops nothing
experiment.py          all of them by name
"""
