"""From a described flow to operators: everything that stays the same for the life of a query.

compiler.py             visits the flow; compiled.py: the result
graph_checks.py         checks of the flow; expression_checks.py: of the user's Spark expressions
ports.py                where rows enter: tag, time, key code, lanes
keys.py                 the 64-bit code of a key
lineage.py              the path of rows through the flow
counted_streams.py      whether tasks or Spark count the rows of a stream
join_columns.py         columns of joins; condition_checks.py: conditions besides equality
column_pruning.py       which columns joins need not build or store
nested_columns.py       which fields of nested columns a reader needs
one_scan.py             one scan for the two inputs of a join
plain_conditions.py     conditions of joins that tasks can evaluate
match_columns.py        columns of matches
windows/                columns of windows, and aggregates as partials
"""
