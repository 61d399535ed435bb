"""One batch: plan, passes, sinks, commit.

engine.py          the steps of a batch, numbered; a plan is written in step 2 (`state/plan_log.py`)
recovery.py        the state to go on from, carried over to the flow of this run
controllers.py     asks `control/` for the plan, and lets it learn from the batch
work_orders.py     from a plan to one work order per operator
piece_files.py     files from which tasks read the pieces of their instance
batch.py           a batch while it runs; settings.py: what the query was started with
job_names.py       descriptions of Spark jobs
sink_step.py       writes the outputs
skew_scan.py       counts the keys of the first rows
match_counts.py    rows and sifters of matches
"""
