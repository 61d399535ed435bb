"""Results of windows whose rows were sampled, with confidence intervals.

estimates.py           the parts of each estimated aggregate
horvitz_thompson.py    estimates and intervals from merged partials
strata.py              groups of groups with a sample ratio each, and when they were sampled
"""
