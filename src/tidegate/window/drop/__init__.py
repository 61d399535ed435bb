"""Window drop: leaves out whole windows, so that the results are always a subset of the exact results.

drop_window.py     the logical window of a drop over nested and shared windows (table 2)
source_range.py    the exact source times of an output window
window_drop.py     the operator: which windows go, by one coin per batch of windows
group_drop.py      the same by groups: which cohorts lose which windows
cohorts.py         what was decided about all cohorts, as one set of times
decisions.py       the decisions, looked up by window
early_drop.py      the rows that no kept window needs
gap_table.py       a constant-time test for these rows
intervals.py       sets of event time
network.py         a query network of sources, stateless steps, windows, joins and outputs
placement.py       where in a network rows are dropped, and which outputs share their decisions
dropped_windows.py what was decided so far by operator, and where rows are missing: through all restarts
lacking.py         which results lack rows because of it
kept_arrows.py     the rows that pass along each arrow of a network
drop_cost.py       the work that a drop saves: the paper's load model
"""
