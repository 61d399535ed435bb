"""Workloads: the generated data behind the demo and the papers' figures."""
