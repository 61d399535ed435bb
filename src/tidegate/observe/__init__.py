"""Progress, metrics, tables and the live page of a run. No pyspark here."""
