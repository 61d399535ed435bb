"""What runs in Spark's Python workers: Arrow batches in and out. Imports neither pyspark nor the driver.

runtime/    where rows enter a worker (`runtime/task_runner.py`), and what all tasks share
join/       the tasks of joins
window/     the tasks of windows, of time and of rows
match/      the tasks of matches
row_hash.py hashes of whole rows, by which joins draw
"""
