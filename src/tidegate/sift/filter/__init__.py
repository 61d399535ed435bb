"""The sifter as a value: its bytes, the region of a row, and whether the row passes.

sifter.py           the value, its JSON form and its binary form
sifter_checks.py    validation of a sifter
sifter_wire.py      the binary layout
lookup.py           the region of a row in constant time per axis
decision.py         which rows of a region are dropped
"""
