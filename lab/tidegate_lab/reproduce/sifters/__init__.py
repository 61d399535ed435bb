"""Experiments of the sifters paper: its figures 3 to 10, and the bars of filter construction.

pickups.py             pick-ups of a real city in place of the paper's hot spots
scene.py               sample, queries and fresh rows: what sifters are built from and judged by
combinations.py        all partitioners and random dropping on one scene
readings.py            points within the hot spots, or whole normals: names and workloads of both
sweep.py               what they do along one setting: curves and gains
partition_pictures.py  figure 3: what partitionings look like
skew_points.py         the points of figure 4
skew_claims.py         what the paper says about them
reading_claims.py      order and trend of gains: which reading they speak for
judging_claims.py      what they hang on that the paper does not tell
gain_bars.py           gains that were asked for, judged twice
skew_figure.py         figure 4: QoS by global and local skew
gains_by_throttler.py  gains over random dropping along one setting
region_figure.py       figure 5: gains by number of regions
timing.py              processor time, for figures about time itself
construction_figure.py figure 6: construction time
lookup_figure.py       figure 7: lookups a second, and bytes
throttler_figure.py    figure 8: QoS by throttler
sensitivity_figures.py figures 9 and 10: gains by fairness threshold and side of queries
beyond.py              `auto` against the best of the four
promises.py            QoS and volume of fresh rows, against what was foreseen
volume_picture.py      what passes beyond z, by z
real_figure.py         the partitioners on pick-ups
experiment.py          all of them by name
"""
