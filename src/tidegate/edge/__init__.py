"""Runs a sifter on an edge node, without Spark or Java: rows in, rows out. `tidegate sift` is its command.

    source.py           input with low latency, and output
    lines.py            the lines in a piece of bytes
    parsing.py          lines to coordinates, and bad lines with their reasons
    json_lines.py       newline JSON; csv_lines.py: CSV
    coordinates.py      values to coordinates
    line_rows.py        rows on lines, through the sifter
    arrow_rows.py       rows of an Arrow stream, through the sifter
    node.py             the sifter with its counts, and the folder it follows
    node_counts.py      the counts of nodes, and what a server makes of them
    sifter_folder.py    the folder that server and nodes share
    folder_files.py     reads files that may be anything

Rows that pass are written unchanged, except for an optional mark.
"""
