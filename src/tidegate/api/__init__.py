"""What a user writes: streams, join conditions, windows, range queries, goals. Describing a flow starts
nothing.
"""
