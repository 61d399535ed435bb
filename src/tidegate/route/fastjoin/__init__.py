"""The `fastjoin` strategy: heavy keys move between instances. Paper: FastJoin.

strategy.py       when keys move, and from whom to whom (III-A, III-B)
imbalance.py      what an instance has to do, and how unequal that is (equations 1 to 4)
candidates.py     what moving a key is worth (equations 7 and 8)
greedy_fit.py     which keys move (algorithm 1)
sa_fit.py         the same by simulated annealing (algorithm 3)
sub_windows.py    the windowed load vector (III-E)
scaling_gain.py   scaling gain ratio (equations 12 and 13)
"""
