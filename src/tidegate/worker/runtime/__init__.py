"""What all tasks share: row layouts, stored runs, caches between batches, staged files."""
