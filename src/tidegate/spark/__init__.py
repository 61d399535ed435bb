"""Spark moves the rows: the only folder that imports pyspark.

It turns the described flow into one pass per micro-batch (filter, route, shuffle, kernels, sink), hands
columns to the stages as numpy arrays and commits what they answered. It decides nothing that a stage or
control could.
"""
