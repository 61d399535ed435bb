"""Plots and tables of measured figures."""
