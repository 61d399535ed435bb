"""The stages and controllers under a simulated clock: counted cost becomes time, a seed repeats exactly.

May import the stages, control and the workloads' arrays; nothing here knows of Arrow, pandas or Spark.
"""
