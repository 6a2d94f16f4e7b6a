"""The meaning of the nv level, on NumPy."""
