"""`tidegate demo`: a synthetic city, overloaded on purpose."""
