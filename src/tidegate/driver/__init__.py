"""What runs in the Spark driver: the only folder that imports pyspark.

start.py              compiles and runs a flow; goal_settings.py: what controllers need
describe.py           the schema of a stream, its result over batch inputs
runner.py             a batch run, or a streaming query of Spark
streaming_query.py    the handle on a running query; trial.py: a flow on the rows of a test
compile/              from a described flow to operators
operators/            the operators: join, window, match; a new kind goes here
engine/               one batch, step by step
frames/               the data frames of one pass
io/                   sources and sinks
session.py            an embedded Spark, and the settings with which a streaming query starts
failures.py           what ends a batch, as one error; quiet_logs.py: keeps Java's traces off the console
worker_python.py      which Python runs the tasks, and whether it has the packages
sql_text.py           SQL that is built in every batch; column_text.py: the SQL of a column expression
arrow_map.py          `mapInArrow` for columns of any name; java_collections.py: Scala's collections
java_process.py       whether Spark's Java process is still there
"""
