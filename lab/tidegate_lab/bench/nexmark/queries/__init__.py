"""The Nexmark queries, once for every engine, and what they have in common.

catalogue         names, columns of the results, which of them keep state
tidegate_flows    as a user of Tidegate writes them
spark_frames      as a user of Structured Streaming writes them
flink_sql         as the reference writes them, with bounded state where the others have it
duckdb_sql        over the finished events: what all others must give
"""
