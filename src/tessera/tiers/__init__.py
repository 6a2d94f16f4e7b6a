"""Tiers: the engine that specializes programs behind guards, and chooses among them by measurement."""
