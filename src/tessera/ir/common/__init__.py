"""Attributes, effects, element types and the tables of functions that the dialects of all levels share."""
