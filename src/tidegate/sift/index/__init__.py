"""The query index: which queries contain a row, exactly, for a hundred thousand queries at once.

query_index.py    the index as a value
box_tree.py       a k-d tree over boxes
box_rows.py       the compiled search for rows
"""
