"""The `auto` strategy, ours: measured cost, the least state moved, hot keys split.

strategy.py       when a plan is needed, which one is taken, and when keys cool down
work_costs.py     prices per row and pair, and what everything costs by them
learnt_costs.py   prices from measured seconds
foresight.py      prices while windows are still filling
lasting.py        too heavy, or just unlucky
plan.py           one draft of the next assignment, and what it weighs
moves.py          the three ways to change a draft: split, shift pieces, level out
grid.py           the instances of a split key, in rows and columns
splitting.py      how many instances a heavy key should lie on, in which grid
packing.py        who takes which partition, with few rows moved
"""
