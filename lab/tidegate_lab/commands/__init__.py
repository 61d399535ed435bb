"""The commands that the lab adds to `tidegate`: `reproduce` and `bench`."""
