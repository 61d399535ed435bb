"""From a level to a decision, one shedding mechanism per file."""
