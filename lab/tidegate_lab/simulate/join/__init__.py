"""The selective join on a simulated machine whose cost is counted in comparisons."""
