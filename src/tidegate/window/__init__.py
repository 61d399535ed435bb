"""Window stage: assembles windows from panes, and decides which whole windows to drop under overload.

Last stage of the data path. Event times and partials go in as numpy arrays; window and pane numbers, merged
partials, masks and time intervals come out. Numpy and numba only; no rows are moved here.

    spec.py            windows: size, slide, and which windows contain a time
    panes.py           the pieces that overlapping windows share
    lifetime.py        how long partials are needed
    aggregates.py      the catalogue: what an aggregate is made of, and how its parts are merged
    runs.py            sorted runs of partials in one order; closing.py: which of them a window is made of
    combine.py         the merging: sliding.py, chosen.py, moments.py, sums.py, lists.py, fold.py
    finals.py          results out of merged partials; sketches.py: how large sketches must be
    udaf.py            aggregates that users define
    count_windows.py   windows of so many rows; waiting_rows.py: which rows of a stored run they may take
    drop_window.py     table 2 of the paper: what a drop must keep together, over nests and fan-outs
    source_range.py    the same, exactly: which source times an output window is made of
    window_drop.py     the operator: which windows go, by one coin per batch of windows
    decisions.py       what it decided, looked up by window
    early_drop.py      which rows can go before anything is done with them
    intervals.py       stretches of event time
    nodes.py           sources, boxes, windows, joins and outputs
    network.py         a query network of such nodes, as one small value
    placement.py       where in a network rows are dropped, and which outputs share their decisions
    kept_arrows.py     which rows pass along each arrow of a network
    drop_cost.py       what a drop saves, by share of the rows
    interpolation.py   estimates for windows that were dropped
"""
