"""What people and machines see of a run. No pyspark here.

progress.py               the public progress of a batch, made of its telemetry and receipt
telemetry.py              the detailed, internal record of a batch; operator_metrics.py: of each operator
shed_metrics.py           metrics of shedding and debts; balance_metrics.py: of balancing
shed_summary.py           what a query sheds, in plain words; tally.py: sums over batches
query_log.py              the log of a query, through Python's logging
live_page.py              progress on a terminal
checkpoint_contents.py    what is in a checkpoint; checkpoint_tables.py: as tables
receipts/                 receipts by batch, hour and in total
table.py, units.py        tables and numbers for people
json_frame.py             the JSON of all measuring commands
"""
