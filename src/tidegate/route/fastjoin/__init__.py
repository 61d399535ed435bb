"""The `fastjoin` strategy: heavy keys move between instances. Paper: FastJoin.

strategy.py       when keys move, from which instance to which (III-A, III-B)
imbalance.py      the load of an instance, and the load imbalance (equations 1 to 4)
greedy_fit.py     the benefit of moving a key (equations 6 to 9), and which keys move (algorithm 1)
sa_fit.py         the same choice by simulated annealing (algorithm 3)
sub_windows.py    the windowed load vector (III-E)
resizing.py       partitions and keys on another number of instances
"""
