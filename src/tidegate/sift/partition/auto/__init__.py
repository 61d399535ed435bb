"""`auto`: a partitioner for all workloads, which the sifters paper leaves open (section VI-B).

`partition.py` describes its objective and its guarantees. The steps, in the order in which they run:

    spread.py     sample rows become a cloud of points where rows of the same stream could lie
    worth.py      the value of rows to queries becomes weighted points
    growth.py     a tree of many more cuts than needed, each the best of its part (best_cut.py)
    pruning.py    the most valuable cuts at this load, exactly, at most l regions
"""
