"""Passes above the machine level, one per file, and the frame that runs them."""
