"""What a user writes: streams, join conditions, windows, range queries, goals. Describing a flow starts
nothing; `driver/start.py` does.

    streams.py            `tg.stream`, and what a stream offers: filter, join, match, window, write_to
    nodes.py              the frozen description of a flow; a new kind of operator starts with a node here
    join_conditions.py    `on=`: overlap, inner product, a function of pairs
    windows.py            windows and their aggregates; user_aggregates.py: `tg.udaf`
    range_queries.py      the queries of a match
    goal.py               `tg.Goal` and `tg.Shed`
    balance.py            `tg.Balance`
"""
