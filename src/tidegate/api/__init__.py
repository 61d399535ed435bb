"""What a user writes: streams, join conditions, windows, range queries, goals. Describing a flow starts
nothing; `start.py` does.

    sources.py            `tg.stream`: a stream from a data frame
    streams.py            what a stream offers: steps, join, match, window, write_to; explain.py: in words
    nodes.py              the frozen description of a flow; a new kind of operator starts with a node here
    joins/                what `join` takes: conditions, time bounds, keys of places
    windows.py            windows and their aggregates; user_aggregates.py: `tg.Aggregator`
    range_queries.py      the queries of a match
    outputs.py            what `write_to` takes; write_stream.py: the same as Spark's DataStreamWriter
    goal.py               `tg.Goal` and `tg.Shed`
    balance.py            `tg.Balance`
    start.py              `tg.start`
    listeners.py          `tg.add_listener`, `tg.await_any`
    names.py              names and paths that users give
"""
