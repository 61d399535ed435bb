"""Sources and sinks.

sinks.py             writes an output to a function or to any Spark format that has no files
tables.py            writes an output to a table of Spark's catalogue
staging.py           results that tasks write as Parquet, on their way to the sinks
publishing.py        files of a batch that nobody sees until it is committed; folders.py: where they lie
read_limits.py       how many rows sources give to the next batch: backpressure
default_limits.py    the same without a goal: as much as tasks have memory for
source_limits.py     which of the two holds, as the goal of a running query changes
file_log.py          which files Spark's file source gave to a batch
availability.py      when the rows of a batch became available
heartbeat.py         the source that gives a batch even when no row came
shared_paths.py      whether all machines reach a checkpoint
source_sifters.py    sifters published for machines at the sources
"""
