"""`tidegate bench windows`: window aggregates of this engine and of Spark's own streams, side by side."""
