"""The `ls-stream` strategy: whole partitions leave the straggler. Paper: Ls-Stream.

strategy.py             when partitions move, and what is remembered
partition_load.py       memory and compute of partitions and instances (equations 7 to 12), and input rates
                        without their extremes (equations 3 and 4)
deviation.py            load imbalance (equations 13 and 14)
relief.py               one step: from the straggler to the least loaded (equations 27, 30, 31)
partition_annealing.py  which partitions (algorithm 1, equations 22 to 25 and 30 to 32), with sojourn times by
                        M/M/1 (equation 20)
"""
