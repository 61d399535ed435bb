"""Routing decides which instance a row goes to: key → code → partition → instance.

Second stage of the data path. It takes key codes as numpy arrays and returns partition and instance numbers.
Many small partitions share one instance, so that balancing changes a small table; only a heavy key leaves its
partition for one of its own. Numpy and numba only, except for the sketch of `frequent_keys.py`.

    hash_routing.py     key code → partition, and the first table
    assignment.py       the decision of a strategy: partition → instance, and keys with places of their own
    targets.py          the instances that get a copy of a new row
    places.py           the partition of each row of a sorted run
    moves.py            the placement and the cuts that carry out an assignment
    load.py             the counts of a batch that strategies decide from
    frequent_keys.py    heavy keys in constant memory; key_counts.py: the keys of a query's first rows
    strategy.py         the protocol of strategies
    baselines.py        `hash`, `random` and `contrand`: nothing ever moves
    fastjoin/           keys move: GreedyFit, SAFit
    ls_stream/          partitions move
    auto/               both move, and hot keys are split
    resizing.py         tables for another number of instances
    elastic.py          the number of instances that the load needs
    hilbert.py          geographic places as keys
"""
