"""The data frames and SQL of one pass."""
