"""Control decides, between two batches, what the next batch will do.

It reads what the last batch reported and writes one value, the `Plan`: watermarks, routing, merges.
Telemetry in, decisions out, no input or output of its own; clock and randomness are arguments, so that a
plan can be made again and comes out the same.
"""
