"""The tasks of a match."""
