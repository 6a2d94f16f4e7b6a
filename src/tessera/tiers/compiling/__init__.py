"""Compiling: what the upper tiers would have compiled, who hands out what is asked for, and processes that do it."""
