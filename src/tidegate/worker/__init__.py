"""What runs in Spark's Python workers: Arrow batches in and out. Imports neither pyspark nor the driver."""
