"""Window stage: assembles windows from panes, and decides which whole windows to drop under overload.

Last stage of the data path. Event times and partials go in as numpy arrays; window and pane numbers, merged
partials, masks and time intervals come out. Numpy and numba only; no rows are moved here.

    spec.py            windows: size, slide, and which windows contain a time
    panes.py           the pieces that overlapping windows share
    lifetime.py        how long partials are needed
    kernel_types.py    argument types of the compiled loops
    aggregate/         partial aggregation: partials of panes merged into results of windows
    count/             windows of a number of rows
    drop/              window drop: which whole windows to leave out
    estimate/          results of windows whose rows were sampled
"""
