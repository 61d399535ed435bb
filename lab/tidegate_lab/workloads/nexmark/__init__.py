"""The events of Nexmark, an online auction: people, auctions and bids; distributed as in the reference.

events    settings, numbers of events, times and keys
texts     random texts, made for many rows at once
rows      the columns of people, auctions and bids, and the table of one file
files     the files of a run
"""
