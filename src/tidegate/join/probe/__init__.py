"""Equal keys and close times on sorted runs of rows."""
