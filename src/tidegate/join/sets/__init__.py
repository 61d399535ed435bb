"""Pairs of sets, weighted sets and vectors that have enough in common."""
