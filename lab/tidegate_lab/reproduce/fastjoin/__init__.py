"""Experiments of the FastJoin paper: its figures 1 and 3 to 14, and the bars of skew routing.

scenarios.py           streams, instances and strategies; a run, what it sustains and how long its rows wait
taxis.py               orders and tracks of real taxis in place of the generated city
claims.py              lines "paper said / we measured" about throughput and latency
key_figure.py          figure 1: how skewed the keys are, and what that does to hash routing
over_time_figures.py   figures 3, 4 and 11: throughput, latency and imbalance over time
sweep.py               throughput and latency of all strategies along one setting
positions.py           where along it
sweep_figures.py       figures 5 to 10: by instances, size of the data, and Θ
group_figures.py       figures 12 and 13: the nine Zipf groups
choice_figure.py       figure 14: GreedyFit against SAFit
beyond.py              Zipf 1.0 on 16 to 20 instances, both topologies: the bars
experiment.py          all of them by name
"""
