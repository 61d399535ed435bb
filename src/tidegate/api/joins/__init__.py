"""What `Stream.join` takes.

join_node.py           from the arguments to a node
conditions.py          `on=`: equal columns, overlap, inner product, a function of pairs
sql_conditions.py      `on=` as SQL text; sql_time_bounds.py: the bounds on time in it
joined_columns.py      the columns of a joined row
time_bounds.py         `within=`: between, same window, unbounded
hilbert.py             places as keys
"""
