"""Blobs on any file system, with an in-memory twin for tests.

store.py      the protocol; local.py, remote.py, memory.py: the stores
sealed.py     JSON files with format version and checksum
paths.py      names of files
downloads.py  local copies of remote files
"""
