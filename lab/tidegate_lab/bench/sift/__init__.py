"""`tidegate bench sift`: the sifter and the query index, on Spark and alone."""
