"""`tidegate demo`: a made-up city, overloaded on purpose."""
