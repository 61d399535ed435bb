"""The tasks of a match.

task.py           rows in, one row out for every query that a row satisfies, then the report
"""
