"""`tidegate bench nexmark`: the Nexmark queries of this engine, Spark's own and Flink, in turns.

queries/     every query for every engine
turns        all at once: rounds over the same files     ─┐
search       sustained: the highest rate that holds       ├─▶ bars, plot
answers      results against DuckDB's                    ─┘
processes    starts contenders and hands them tasks: process, task
worker       the process of a contender on Spark ─▶ play, or sustain with latency
"""
