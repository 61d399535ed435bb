"""The query index: which queries hold a row, exactly, for a hundred thousand queries at once."""
