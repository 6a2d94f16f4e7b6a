"""Tile level to nv level for every GPU: layouts, shared memory, and passes at the nv level."""
