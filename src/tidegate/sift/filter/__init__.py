"""The sifter as a value: its bytes, the region of a row, and whether the row passes."""
