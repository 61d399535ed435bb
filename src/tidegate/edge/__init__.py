"""A sifter on an edge node, without Spark or Java: rows in, rows out, as `tidegate sift` runs it.

`source` reads without holding anything back, `json_lines`, `csv_lines` and `arrow_rows` know one format each,
`line_rows` and `arrow_rows` carry the rows, `node` decides and counts. Rows that pass leave as they came.
"""
