"""State keeps what a query remembers between two batches, and finds it again after a crash.

Immutable Arrow segments, one manifest per batch that says which of them count, the plans, the telemetry.
`checkpoint.Checkpoint` ties the parts together and `store` is the only way to the disk. Nothing is
pickled: JSON and Arrow only. No pyspark here.
"""
