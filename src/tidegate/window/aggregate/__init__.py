"""Partials of panes merged into the results of windows."""
