"""Windows of a number of rows."""
