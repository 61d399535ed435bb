"""Where rows are stored next: loads in, routing out.

balancing.py    calls the strategy after each batch and keeps its assignment; strategies are in `route/`
loads.py        reports and manifest as the loads that strategies read
rerouting.py    assignments as the routing of the next batch
skew_scan.py    the loads of the first batch, from a count of its keys
"""
