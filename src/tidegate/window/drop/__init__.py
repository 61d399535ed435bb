"""Window drop: which whole windows go, so that results are always a subset of the truth."""
