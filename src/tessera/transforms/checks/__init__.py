"""Passes that write checks into programs, or move them to the host."""
