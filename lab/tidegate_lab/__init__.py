"""Measures Tidegate and is not part of it: workloads, simulators, reproductions, benchmarks."""
