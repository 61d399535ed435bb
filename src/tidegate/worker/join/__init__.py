"""The tasks of a join."""
