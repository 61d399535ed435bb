"""What was lost, exactly: ledgers, completeness, recall, receipts."""
