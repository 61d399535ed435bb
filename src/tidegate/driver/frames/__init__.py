"""The data frames and SQL of one pass.

query_input.py        the one input of a streaming query, and the plan of each stream in a batch
stream_rows.py        the rows of a batch by what reads them; grafts.py: compiled plans on top of these rows
pass_frames.py        builds the frames of all operators; pass_input.py: the rows that they start from
passes.py             runs them: one action, reports back, rows for the sinks
routing_frames.py     each row to the instances that need it: the shuffle
window_frames.py      rows become pane partials
sifter_frames.py      the sifter in front of a match
drop_frames.py        rows of dropped windows; sample_frames.py: rows of approximate windows
residual_frames.py    the `where` of outer, semi and anti joins, between two steps of a task
observed.py           counts that Spark makes; hilbert.py: `tg.hilbert`; frame_cache.py: what never changes
"""
