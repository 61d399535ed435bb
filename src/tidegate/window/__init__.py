"""Window decides which windows a time lies in, and which whole windows to leave out under overload.

Last stage on the way of the data. Event times go in as numpy arrays; window and pane numbers, masks and time
intervals come out. Pure: numpy only, no rows are moved here.

    spec.py            a window: which windows hold a time
    panes.py           the pieces that neighbouring windows share
    drop_window.py     table 2 of the paper: what a drop must keep together, over nests and fan-outs
    source_range.py    the same, exactly: which source times an output window is made of
    window_drop.py     the operator: which windows go, by one coin per batch of windows
    decisions.py       what it decided, looked up by window
    early_drop.py      which rows can go before anything is done with them
    intervals.py       stretches of event time
    network.py         sources, boxes, windows, joins and outputs, as one small value
    placement.py       where in a network rows are dropped, and which outputs share their decisions
    kept_arrows.py     which rows pass along each arrow of a network
    drop_cost.py       what a drop saves: the paper's load model
    admission.py       how much to drop; and whom to shut off when that is not enough
"""
