"""Sift decides which rows are worth carrying at all.

First stage on the way of the data. It takes columns as numpy arrays and answers with a mask of the rows
to keep; what a mask leaves out is counted, never forgotten. Pure: numpy and numba only (and sqlglot, to read
the predicates of queries), no rows are moved here.
"""
