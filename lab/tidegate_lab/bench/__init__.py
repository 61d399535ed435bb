"""`tidegate bench join`: contenders, the rounds they take turns in, and what is made of their figures.

scenarios ─▶ rounds ─▶ process ─▶ contender ─▶ streaming, floor_job, duckdb_job, or a job elsewhere
               │                     └─ probe: what is noted while it runs
               └─▶ summary ─▶ bars, tables
"""
