"""One kind of operator per file, all behind the protocol of `protocol.py`."""
