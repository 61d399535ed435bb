"""Receipts for people.

receipt_tables.py    receipts by batch, hour and in total
receipt_frame.py     how their data frame is printed
"""
