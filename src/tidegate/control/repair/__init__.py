"""Skipped pairs: what is owed, what is repaired next, what is written off."""
