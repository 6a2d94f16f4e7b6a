"""Targets: from Tile IR to machine code, one folder per machine, and what they share."""
