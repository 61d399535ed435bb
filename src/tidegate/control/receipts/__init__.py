"""What was lost, exactly.

receipts.py        the receipt of a batch: every stream and every output
ledger.py          what became of each row that an operator was offered
completeness.py    which outputs may lack results, and why
warnings.py        since when each warning holds
recall.py          the share of a join's results that was found, with an interval
would_shed.py      what a goal that only observes would have shed
roll_up.py         receipts of several batches added up: by minute, by hour, in total
"""
