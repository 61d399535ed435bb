"""Join decides which rows belong together.

Third stage on the way of the data. It takes sorted key codes and times as numpy arrays and answers with
pairs of indices (left, right) in bounded chunks, so that a hot key cannot exhaust the memory. Pure:
numpy and numba only; rows are put together elsewhere.
"""
