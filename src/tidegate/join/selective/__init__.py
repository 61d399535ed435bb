"""Selective processing: the part of the opposite window that each new row probes when load is shed.

reach.py             time ranges to probe, one per basic window (algorithm 3, batch by batch)
skipped_ranges.py    the complement: time ranges left out, for later repair
planned.py           new rows with the plan of their batch applied
selection.py         hash sampling by row identity
time_correlation.py  order of basic windows by matches per comparison (algorithm 2)
direction.py         split of the budget over both windows (algorithm 4)
kept_rows.py         the part of the stored rows that random drop kept, by basic window
cells.py             the best basic windows of both windows together (ours)
content.py           expected matches of a row with a slot, from item frequencies (ours)
row_cells.py         the best (row, slot) cells within one budget (ours)
content_choice.py    content-aware probe: both applied to the rows of an instance (ours)
"""
