"""Derivatives of graphs: one walk writes tangents, another transposes them, and a third adds a batch axis."""
