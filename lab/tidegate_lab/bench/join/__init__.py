"""Speed of the join next to Spark's own, Flink, Pathway and DuckDB."""
