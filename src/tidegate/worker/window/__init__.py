"""The tasks of window aggregates.

task.py                 time windows: one instance in one batch; work.py: its work order
count_task.py           count windows
early_partials.py       partials made by the tasks of the operator in front
received.py             partials or rows, as received from Spark
merged_rows.py          several runs in one order, cut into stretches
window_columns.py       the columns of a window: partial_columns.py, list_columns.py, sketch_columns.py,
                        udaf_columns.py, estimated_columns.py
"""
