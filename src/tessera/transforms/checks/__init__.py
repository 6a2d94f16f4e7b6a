"""Passes that write checks into tile functions, or move them to the host."""
