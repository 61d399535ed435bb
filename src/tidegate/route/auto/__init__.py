"""The `auto` strategy, ours: measured cost, the least state moved, hot keys split.

strategy.py       when to plan, which plan to take, and when split keys are merged again
work_costs.py     prices per row and pair, the costs that follow, and prices while windows still fill
learnt_costs.py   prices from measured seconds
lasting.py        lasting overload or chance
plan.py           one draft of the next assignment, with its loads and moved rows
moves.py          the three ways to change a draft: split, shift pieces, level out
splitting.py      how many instances a heavy key needs, and in which grid
packing.py        which instance takes which partition, with few rows moved
"""
