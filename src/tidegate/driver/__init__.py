"""What runs in the Spark driver: the only folder that imports pyspark.

start.py              `tidegate.start`: checks, compiles, runs; goal_settings.py: what controllers need
runner.py             a batch run, or a streaming query of Spark
streaming_query.py    the handle on a running query
compile/              from a described flow to operators
operators/            the operators: join, window, match; a new kind goes here
engine/               one batch, step by step
frames/               the data frames of one pass
io/                   sources and sinks
session.py            an embedded Spark; spark_conf.py: settings of a streaming query
sql_text.py, java_collections.py, worker_errors.py    SQL text, Scala's collections, errors of tasks
"""
