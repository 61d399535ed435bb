"""Balancing strategies on recorded and generated loads, with simulated instances."""
