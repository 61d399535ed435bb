"""Ls-Stream's figures again, in the papers' own cost model: comparisons are counted, nothing is timed.

systems.py            the four systems that are compared, and a run of one of them
streams.py            what comes in: Zipf streams with many and with few keys, the made-up city
measures.py           throughput, capacity and latency of a run, and lines that tell a gain
skew_runs.py          runs on Zipf streams
skew_figures.py       figures 7 and 8: imbalance and throughput by skew
skew_latency.py       figure 9: latency by skew
city_figures.py       figures 2, 10 and 11: the city by nodes and instances
latency_figures.py    figures 12 and 13: latency over time and by instances
threshold_figures.py  figures 14 and 15: the threshold α
beyond.py             partitions per instance, joins with an index, the size of the routing table
experiment.py         the figures by name
"""
