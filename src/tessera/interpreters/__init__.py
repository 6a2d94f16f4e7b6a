"""Reference interpreters in NumPy: they define the meaning of each dialect."""
