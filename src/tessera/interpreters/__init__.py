"""What each dialect means: reference interpreters in NumPy."""
