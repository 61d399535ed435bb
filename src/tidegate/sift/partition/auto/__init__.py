"""`auto`: the partitioner that is best everywhere, which the sifters paper leaves open (section VI-B).

`partition.py` says what it maximises and what it guarantees. The steps, in the order in which they run:

    spread.py     sample rows become a cloud: where rows of the same stream would also have been
    worth.py      what rows are worth to queries becomes weighted points
    growth.py     a tree of many more cuts than wanted, each the best of its part (best_cut.py)
    pruning.py    the cuts that are worth most at this load, exactly, at most l regions
"""
