"""Window networks and window drops on a simulated clock."""
