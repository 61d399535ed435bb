"""`tidegate bench overload`: a join that suddenly gets several times the work it has time for."""
