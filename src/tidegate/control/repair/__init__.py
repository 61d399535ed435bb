"""Skipped pairs: what is in debt, what is repaired next, what is written off.

debts.py        the ledger of debts
repair.py       which debts the next batch repairs
"""
