"""A goal over networks of operators, on a simulated clock."""
