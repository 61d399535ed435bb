"""Results of windows whose rows were sampled, with confidence intervals."""
