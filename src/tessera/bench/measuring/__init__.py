"""Measuring: clocks, samples, hardware, and one case at a time."""
