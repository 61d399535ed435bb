"""`tidegate bench overload`: a join under a sudden overload."""
