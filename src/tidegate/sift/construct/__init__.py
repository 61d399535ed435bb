"""From regions to thresholds: what regions are worth to queries, and how much to drop in each."""
