"""Contenders whose packages live in another interpreter: scripts that import nothing of Tidegate."""
