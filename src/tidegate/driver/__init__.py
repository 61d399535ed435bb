"""The code that runs in the Spark driver: the only folder that imports pyspark."""
