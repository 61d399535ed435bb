"""Route decides which instance a row goes to: key → code → partition → instance.

Second stage on the way of the data. It takes key codes as numpy arrays and answers with partition and
instance numbers. Many small partitions share one instance, so that balance is a change of a small table
and no row's partition ever changes. Pure: numpy and numba only.
"""
