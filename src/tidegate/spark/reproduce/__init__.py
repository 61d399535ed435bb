"""Figures of the papers, measured on Spark instead of under a simulated clock."""
