"""The public API: streams, join conditions, windows, range queries, goals. It describes, starts nothing."""
