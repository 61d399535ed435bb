"""What people and machines see of a run. No pyspark here.

progress.py               the report of one batch
shed_metrics.py           metrics of shedding and debts; balance_metrics.py: of balancing
shed_summary.py           what a query sheds, in plain words; tally.py: sums over batches
live_page.py              progress on a terminal
checkpoint_contents.py    what is in a checkpoint; checkpoint_tables.py: as tables
receipt_tables.py         receipts as tables and data frames
table.py, units.py        tables and numbers for people
json_frame.py             the JSON of all measuring commands
"""
