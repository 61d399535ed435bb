"""How the data space is cut into the regions of a sifter, one partitioner per file."""
