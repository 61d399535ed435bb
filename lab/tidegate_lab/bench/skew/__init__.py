"""Skewed streams under every balancing strategy: how even the work is, and what it takes to keep it so."""
