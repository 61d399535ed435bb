"""Sift stage: decides which rows to keep at the source, by their value to the registered range queries.

First stage of the data path. It takes columns as numpy arrays and returns a mask of the rows to keep; rows
that a mask drops are counted. Numpy and numba only (and sqlglot, to read the predicates of queries); no
rows are moved here.

    regions.py, domain.py    a partitioning of the data space, and its bounds
    placing.py               the region of a row, by walking the tree of cuts
    construction.py          a sample in, the regions and thresholds of a sifter out
    queries/                 SQL predicates become disjoint boxes
    partition/               partitioners: how the space is cut into regions
    construct/               the value of regions to queries, and how much to drop in each
    filter/                  the sifter as a value, and its decision about each row
    index/                   which queries contain a row
"""
