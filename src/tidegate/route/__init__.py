"""Route decides which instance a row goes to: key → code → partition → instance.

Second stage on the way of the data. It takes key codes as numpy arrays and answers with partition and
instance numbers. Many small partitions share one instance, so that balance is a change of a small table;
only a heavy key leaves its partition, for one of its own. Pure: numpy and numba only.

    hash.py, targets.py, places.py      where a row goes, and where stored rows lie
    assignment.py, load.py, moves.py    what strategies decide, are told, and how a decision becomes true
    strategy.py                         what every strategy offers; one file or folder each:
        hash_only.py, random_spread.py, contrand.py     nothing ever moves
        fastjoin/                                       keys move
        ls_stream/                                      partitions move
        auto/                                           both, and hot keys are split
    resizing.py, elastic.py             other numbers of instances
    hilbert.py                          places as keys
"""
