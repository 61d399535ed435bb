"""Blobs on any file system, with an in-memory twin for tests."""
