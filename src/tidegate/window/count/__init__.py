"""Windows of a number of rows.

count_windows.py    which windows are complete, and which rows wait
waiting_rows.py     the rows of a stored run that wait for a window
"""
