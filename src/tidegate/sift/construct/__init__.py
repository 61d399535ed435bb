"""From regions to thresholds: the value of regions to queries, and how much to drop in each.

consolidation.py    region QoS: the value of each region's rows to all queries
covering.py         the regions that a box intersects, and the share of their volume that it covers
shrinkage.py        region frequencies corrected for sampling error
configuration.py    the best drop threshold of each region
"""
