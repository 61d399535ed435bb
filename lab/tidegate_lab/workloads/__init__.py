"""Workloads and experiments: the made-up data behind the demo and the papers' figures."""
