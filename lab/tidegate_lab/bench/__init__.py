"""Benchmarks behind `tidegate bench`. The parts of `tidegate bench join`:

scenarios ─▶ rounds ─▶ process ─▶ contender ─▶ streaming, floor_job, duckdb_job, or a job elsewhere
               │                     └─ probe: measurements while it runs
               └─▶ summary ─▶ bars, tables
"""
