"""What people and machines see of a run: progress, metrics, tables, live page. No pyspark here."""
