"""Window stage: assembles windows from panes, and decides which whole windows to drop under overload.

Last stage of the data path. Event times and partials go in as numpy arrays; window and pane numbers, merged
partials, masks and time intervals come out. Numpy and numba only; no rows are moved here. Another kind of
window (a session, say) gets a folder of its own here, as `count/` is; `driver/operators/` says what else it
needs.

    spec.py            windows of time and of rows: size, slide, and which windows contain a time
    panes.py           the pieces that overlapping windows share
    lifetime.py        how long partials are needed
    kernel_types.py    argument types of the compiled loops
    aggregate/         partials of panes merged into results
    count/             windows of a number of rows
    drop/              window drop: which windows are left out
    estimate/          results from sampled rows
"""
