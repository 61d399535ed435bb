"""Turns SQL predicates of range queries into disjoint boxes of a data space.

axes.py            columns as axes: coordinates and places
predicates.py      the tree of a predicate; sql.py: its parser
templates.py       predicates that differ only in their literals, parsed once
space.py           the axes and cells that a set of queries uses
ranges.py          the places of one comparison
slices.py          sets of places in n dimensions
truth.py           the places where a predicate is true
conjunctions.py    all queries of a template at once, where each is a single box
boxes.py           the boxes of queries; query_boxes.py: from queries to boxes
query_set.py       boxes with weights and alphas
"""
