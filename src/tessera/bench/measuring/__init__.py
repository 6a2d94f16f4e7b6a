"""Measuring: operators and their implementations, samples, checks, and one case at a time."""
