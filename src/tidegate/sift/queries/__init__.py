"""SQL predicates of range queries become disjoint boxes of a data space."""
