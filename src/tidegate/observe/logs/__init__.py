"""The log of a query.

events.py       which lines a query logs, computed from its telemetry
query_log.py    writes them to Python's logging, under `tidegate.query`
"""
