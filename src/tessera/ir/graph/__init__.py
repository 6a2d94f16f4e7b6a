"""The graph dialect: whole-array algebra with symbolic sizes."""
