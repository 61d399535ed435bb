"""Workloads: the generated data behind the demo, the papers' figures and the benchmarks."""
