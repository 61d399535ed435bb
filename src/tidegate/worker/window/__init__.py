"""The tasks of window aggregates."""
