"""One kind of operator per file, all behind the protocol of `protocol.py`.

    protocol.py        what the compiler, a batch and the sinks ask of an operator
    registry.py        which builder makes the operator of a node
    join.py            joins
    window.py          windows of time, and of a number of rows
    match.py           matches
    union.py           unions of streams
    tap.py             where rows of a source enter

A new kind (a session window, say) is a node in `api/nodes.py`, an operator here with a line in the registry,
a work order and a task in `worker/`, and its algorithm in `window/` or `join/`. Planning and checks go by
traits (`model/graph.py`). `tests/spark/session_windows.py` does it in one file. (Count windows are no kind of
their own: they share the node of windows of time, and differ by `spec.counts_rows`.)
"""
