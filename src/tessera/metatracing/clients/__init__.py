"""Clients of the tiers: kernels and jitted functions, compiled here or in another process."""
