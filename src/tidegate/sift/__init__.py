"""Sift decides which rows are worth carrying at all.

First stage on the way of the data. It takes columns as numpy arrays and answers with a mask of the rows
to keep; what a mask leaves out is counted, never forgotten. Pure: numpy and numba only (and sqlglot, to read
the predicates of queries), no rows are moved here.

    axes.py, boxes.py, regions.py      the space: coordinates, what queries ask for, how it is cut
    query_set.py                       queries in SQL become boxes (sql.py, templates.py, truth.py, …)
    query_index.py                     which queries hold a row (box_tree.py, box_rows.py, …)
    partitioners.py, auto/             how the space is cut: the paper's ways, and ours
    consolidation.py, configuration.py what regions are worth to queries, and how much to drop in each
    construction.py                    all of it: a sample in, a sifter's regions and thresholds out
    sifter.py, lookup.py, decision.py  the filter as a thing: where a row lies, and whether it passes
"""
