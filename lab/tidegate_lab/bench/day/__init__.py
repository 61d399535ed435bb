"""`tidegate bench overload`: one scripted day in minutes, under this controller and three others."""
