"""Pairs of rows with equal keys and close times, found on sorted runs.

order.py           sort rows by (code, time)
meet.py            probing rows whose code is stored
probe.py           the range of stored rows that matches each probing row, and pairs in chunks
key_filter.py      Bloom filter: skip the search for keys that are not stored
matched_bits.py    one bit per stored row: has it found a partner (outer, semi and anti joins)
"""
