"""One batch: plan, passes, sinks, commit."""
