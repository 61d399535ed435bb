"""`tidegate bench nexmark`: the Nexmark queries of this engine, Spark's own and Flink, in turns."""
