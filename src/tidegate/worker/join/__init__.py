"""The tasks of a join.

task.py               one instance in one batch; work.py: what the batch asks of it, and what it counts
pair_finder.py        every pair exactly once: new rows with stored rows, and with each other
matcher.py            pairs of two runs; probing.py: the rows that probe
predicates.py         the join predicate; set_predicates.py, item_columns.py: for sets
content_probe.py      content-aware probe
settle.py             matched bits, unmatched rows, merged pieces
comparisons.py        `where` of whole numbers and times, on pairs
residual.py           the second step, after Spark has evaluated `where`
repair.py             pairs that earlier batches skipped
joined_rows.py        joined rows as Arrow batches
key_loads.py          the keys that cause the work
"""
