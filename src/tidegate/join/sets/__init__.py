"""Pairs of sets, weighted sets and vectors that are similar enough.

thresholds.py      the conditions: overlap, Jaccard, inner product
similarity.py      exact tables for Jaccard, and weights for the inner product
item_sets.py       sets as dense codes, and as bitsets
pair_finders.py    the protocol of all pair finders
bitset_pairs.py    overlap and Jaccard without an index
weighted_pairs.py  inner product without an index
inverted_lists.py  any condition with an index; list_counts.py and list_sums.py read the lists
index_choice.py    index or no index
vectors.py         vector instructions for kernels
"""
