"""Parts that all tasks share. Rows enter a worker in `task_runner.py`.

task_runner.py     what Spark calls with Arrow batches: by_instance and in_one_task (with state),
                   by_partition (without)
task_errors.py     brings an error of a task to the driver, with its code and details
layout.py          the columns of rows, in the shuffle and in the state
runs.py            sorted rows of one side: new, or stored by an earlier batch
owned_state.py     the stored rows of one instance; state_order.py: the state part of a work order
piece_lists.py     a file with the pieces of each instance
marks.py           rows that matched on an instance that does not store them
portions.py        rows in portions, so that a task holds a bounded part of them at a time
worker_cache.py    what a worker process keeps between batches
memory.py          what memory a worker keeps, and what its tasks may hold
stage_file.py      results as one Parquet file per task
pipe.py            results that go straight on to another operator
key_scan.py        counts the keys of the first batch
"""
