"""Skewed streams under every balancing strategy: how even the work is, and the cost of balancing."""
