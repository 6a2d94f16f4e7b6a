"""Tile level to cpu level: loop nests over register tiles."""
