"""Windows: their columns, and their aggregates taken apart into partials.

window_schema.py        the columns of windows
window_aggregates.py    aggregates as partials that Spark computes and tasks merge
early.py                whether the tasks in front can aggregate
aggregate_calls.py      how users write Spark's aggregates
"""
