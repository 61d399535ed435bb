"""The tasks of window aggregates.

task.py                 windows of time: one instance in one batch; work.py: what the batch asks of it
count_task.py           windows of a number of rows
received.py             partials or rows, as they come from Spark
merged_rows.py          several runs in one order, cut into stretches
window_columns.py       the columns of a window: partial_columns.py, list_columns.py, sketch_columns.py,
                        udaf_columns.py, estimated_columns.py
"""
