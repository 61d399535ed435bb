"""The join kernels decide which rows belong together.

Third stage of the data path. The kernels take sorted key codes and times as numpy arrays and return pairs of
indices (left, right) in bounded chunks, so that a hot key cannot exhaust the memory. Numpy and numba only;
`worker/join/` assembles the joined rows.

    within.py          the time condition: range of partner times, lifetime of rows, basic windows
    kernel_types.py    argument types of the compiled loops
    probe/             equal keys and close times on sorted runs
    selective/         load shedding: the part of the window that each new row probes
    sets/              pairs of sets, weighted sets and vectors
"""
