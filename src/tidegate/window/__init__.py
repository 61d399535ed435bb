"""Window decides which slot of time a row falls into and when that slot is over.

Last stage on the way of the data. It takes event times as numpy arrays and answers with slot numbers:
the same slots cut the stored state, so that expiry is the removal of whole slots. Pure: numpy and numba
only.
"""
