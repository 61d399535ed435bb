"""Selective processing: which parts of the windows a new row is compared with."""
